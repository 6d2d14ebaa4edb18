package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	clientlib "ledgerd/httpd/client"
)

// foldedStream is what one stream of a client library adds up to.
type foldedStream struct {
	Name     string // what it asks for, and the level
	Starts   int
	Wrong    string // the first thing that must not be
	Accounts []foldedAccount
}

type foldedAccount struct {
	Pubkey   string
	Lamports uint64 `json:",string"`
	Owner    string
	Seq      uint64 `json:",string"`
}

// differs returns the first account that REST answers differently, of those that the stream was told of; of those of all programs, none may
// be left out.
func (f *foldedStream) differs(all map[string]accountState) error {
	if f.Starts == 0 {
		return errors.New("it has not begun")
	}
	told := map[string]bool{}
	for _, a := range f.Accounts {
		told[a.Pubkey] = true
		if held, ok := all[a.Pubkey]; ok != (a.Lamports != 0) || ok && (a.Lamports != held.Lamports || a.Owner != held.Owner) {
			return fmt.Errorf("told %+v, REST answers %+v", a, held)
		}
	}
	for key := range all {
		if strings.HasPrefix(f.Name, "programs") && !told[key] {
			return fmt.Errorf("%s was never told", key)
		}
	}
	return nil
}

// clientFold folds a stream of the Go client.
type clientFold struct {
	name string
	sub  clientlib.Subscription
	slow func(n int) // called before each update, with how many there were

	mu       sync.Mutex
	accounts map[string]clientlib.Update
	seq      uint64  // of the newest update
	from     uint64  // where it began anew
	run      []heard // all since then
	starts   int
	updates  int
	gaps     int
	lost     map[int]int // connections, by the close code that ended them, or 0
	listing  bool
	wrong    string
}

// foldsOf returns folds of everything, and of the accounts of programs, at each level.
func foldsOf() (folds []*clientFold) {
	for _, level := range levels {
		everything := clientlib.Subscription{Commitment: clientlib.Commitment(level)}
		programs := clientlib.Subscription{Commitment: clientlib.Commitment(level), Programs: simPrograms}
		folds = append(folds, &clientFold{name: "everything, " + level, sub: everything}, &clientFold{name: "programs, " + level, sub: programs})
	}
	return folds
}

func (f *clientFold) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *clientFold) handler() clientlib.Handler {
	return clientlib.Handler{
		Start: func(at clientlib.Start) {
			f.locked(func() {
				f.starts, f.accounts, f.seq, f.listing = f.starts+1, map[string]clientlib.Update{}, at.Seq, at.Snapshot
				f.from, f.run = at.Seq, nil
			})
		},
		Ready: func() { f.locked(func() { f.listing = false }) },
		Update: func(u clientlib.Update) {
			if f.slow != nil {
				f.slow(f.updates)
			}
			f.locked(func() { f.update(u) })
		},
		Rollback: func(r clientlib.Rollback) { f.locked(func() { f.hear("rollback", r.ToSlot, r.Seq, accountState{}) }) },
		SlotEnd:  func(slot, seq uint64) { f.locked(func() { f.hear("slot_end", slot, seq, accountState{}) }) },
		Gap:      func(clientlib.Gap) { f.locked(func() { f.gaps++ }) },
		Disconnected: func(why error, _ time.Duration) {
			f.locked(func() {
				var end *websocket.CloseError
				if f.lost == nil {
					f.lost = map[int]int{}
				}
				if errors.As(why, &end) {
					f.lost[end.Code]++
				} else {
					f.lost[0]++
				}
			})
		},
	}
}

func (f *clientFold) hear(kind string, slot, seq uint64, a accountState) {
	f.run = append(f.run, heard{kind, place{slot, seq}, a})
}

// update folds an update. At the processed level numbers rise, and those of everything have no holes.
func (f *clientFold) update(u clientlib.Update) {
	whole := f.sub.Programs == nil && f.sub.Pubkeys == nil
	if !f.listing && !f.sub.Conflate && f.sub.Commitment == clientlib.Processed && (u.Seq <= f.seq || whole && u.Seq != f.seq+1) {
		f.wrong = cmp.Or(f.wrong, fmt.Sprintf("number %d comes after %d", u.Seq, f.seq))
	}
	f.accounts[u.Pubkey], f.seq = u, u.Seq
	if f.updates++; whole && !f.listing {
		f.hear("account_update", u.Slot, u.Seq, accountState{
			u.Pubkey, u.Owner, u.Lamports, u.Executable, string(u.Commitment), u.Timestamp.Format(time.RFC3339),
		})
	}
}

// followGo has the Go client follow a node. What is returned tells what its streams add up to.
func followGo(t *testing.T, address string, folds []*clientFold) (state func() []foldedStream) {
	t.Helper()
	library, err := clientlib.New(address, clientlib.Options{})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		following.Wait()
	})
	for _, f := range folds {
		following.Go(func() {
			if err := library.Stream(ctx, f.sub, f.handler()); ctx.Err() == nil {
				f.locked(func() { f.wrong = cmp.Or(f.wrong, fmt.Sprint("the stream ended: ", err)) })
			}
		})
	}
	return func() (states []foldedStream) {
		for _, f := range folds {
			f.locked(func() {
				s := foldedStream{Name: f.name, Starts: f.starts, Wrong: f.wrong}
				for _, u := range f.accounts {
					s.Accounts = append(s.Accounts, foldedAccount{u.Pubkey, u.Lamports, u.Owner, u.Seq})
				}
				states = append(states, s)
			})
		}
		return states
	}
}

// followJavaScript has the JavaScript client do the same in a process of node, with npm's ws.
func followJavaScript(t *testing.T, address string, _ []*clientFold) (state func() []foldedStream) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed here")
	}
	c := exec.Command("node", "testdata/client.mjs", "../../httpd/console/client/ledgerd.js", address, strings.Join(simPrograms, ","))
	c.Env = append(os.Environ(), "NODE_PATH="+os.Getenv("NODE_PATH")+":/usr/share/nodejs")
	said := new(bytes.Buffer)
	c.Stderr = said
	in, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	must(t, errors.Join(err, err2, c.Start()))
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		_ = in.Close()
		_ = c.Wait()
		if strings.Contains(said.String(), "Cannot find module 'ws'") {
			t.Skip("node has no package ws here: install node-ws, or name its folder in NODE_PATH")
		}
		t.Fatalf("node does not follow: %v\n%s", err, said)
	}
	return func() (states []foldedStream) {
		_, err := in.Write([]byte{'\n'})
		line, err2 := lines.ReadBytes('\n')
		if err := errors.Join(err, err2, json.Unmarshal(line, &states)); err != nil {
			t.Fatalf("node tells nothing: %v", err)
		}
		return states
	}
}
