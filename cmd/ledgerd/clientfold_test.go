package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	Gaps     int
	Wrong    string            // the first thing that must not be
	Accounts map[string]string // by pubkey, as shown shows them
	pubkeys  []string          // that it names
}

// differs returns the first account that REST answers differently, of those that the stream was told of; of those of all programs, and
// of those that it names, none may be left out.
func (f *foldedStream) differs(all map[string]accountState) error {
	if f.Starts == 0 {
		return errors.New("it has not begun")
	}
	for key, told := range f.Accounts {
		held, ok := all[key]
		if !strings.HasPrefix(f.Name, "pools") {
			held.Data = "" // which was not asked for
		}
		if closed := strings.HasPrefix(told, "0 "); ok == closed || ok && told != shown(held) {
			return fmt.Errorf("%s: told %s, REST answers %+v", key, told, held)
		}
	}
	for key := range all {
		if _, told := f.Accounts[key]; !told && (strings.HasPrefix(f.Name, "programs") || slices.Contains(f.pubkeys, key)) {
			return fmt.Errorf("%s was never told", key)
		}
	}
	return nil
}

// clientFold folds a stream of the Go client.
type clientFold struct {
	sub clientlib.Subscription

	mu sync.Mutex
	foldedStream
	seq     uint64      // of the newest update
	undone  int         // times that blocks were
	end     place       // of the newest block, which is told once
	lost    map[int]int // connections, by the close code that ended them, or 0
	listing bool
	news    chan struct{} // gets a token with each update, if it is there
}

func newFold(name string, sub clientlib.Subscription) *clientFold {
	return &clientFold{sub: sub, foldedStream: foldedStream{Name: name + ", " + string(sub.Commitment), pubkeys: sub.Pubkeys}, lost: map[int]int{}}
}

// foldsOf returns folds of everything, and of the accounts of programs, at each level.
func foldsOf() (folds []*clientFold) {
	for _, level := range levels {
		everything := clientlib.Subscription{Commitment: clientlib.Commitment(level)}
		programs := clientlib.Subscription{Commitment: clientlib.Commitment(level), Programs: simPrograms}
		folds = append(folds, newFold("everything", everything), newFold("programs", programs))
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
				f.Starts, f.Accounts, f.seq, f.listing = f.Starts+1, map[string]string{}, at.Seq, at.Snapshot
			})
		},
		Ready:        func() { f.locked(func() { f.listing = false }) },
		Update:       func(u clientlib.Update) { f.locked(func() { f.update(u) }) },
		Rollback:     func(clientlib.Rollback) { f.locked(func() { f.undone, f.end = f.undone+1, place{} }) },
		SlotEnd:      func(slot, seq uint64) { f.locked(func() { f.ends(place{slot, seq}) }) },
		Gap:          func(clientlib.Gap) { f.locked(func() { f.Gaps++ }) },
		Disconnected: func(why error, _ time.Duration) { f.lose(why) },
	}
}

// lose counts a connection that ended.
func (f *clientFold) lose(why error) {
	f.locked(func() {
		end := new(websocket.CloseError)
		errors.As(why, &end)
		f.lost[end.Code]++
	})
}

func (f *clientFold) ends(p place) {
	if p == f.end {
		f.Wrong = cmp.Or(f.Wrong, fmt.Sprintf("the end of %+v comes twice", p))
	}
	f.end = p
}

// update folds an update. At the processed level numbers rise, and those of everything have no holes.
func (f *clientFold) update(u clientlib.Update) {
	whole := f.sub.Programs == nil && f.sub.Pubkeys == nil
	if !f.listing && f.sub.More == nil && f.sub.Commitment == clientlib.Processed && (u.Seq <= f.seq || whole && u.Seq != f.seq+1) {
		f.Wrong = cmp.Or(f.Wrong, fmt.Sprintf("number %d comes after %d", u.Seq, f.seq))
	}
	f.Accounts[u.Pubkey], f.seq = shown(accountState{Lamports: u.Lamports, Owner: u.Owner, Data: base64.StdEncoding.EncodeToString(u.Data)}), u.Seq
	select {
	case f.news <- struct{}{}:
	default:
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
				f.locked(func() { f.Wrong = cmp.Or(f.Wrong, fmt.Sprint("the stream ended: ", err)) })
			}
		})
	}
	return func() (states []foldedStream) {
		for _, f := range folds {
			f.locked(func() {
				s := f.foldedStream
				s.Accounts = maps.Clone(s.Accounts)
				states = append(states, s)
			})
		}
		return states
	}
}

// followJavaScript has the JavaScript client do the same in a process of node, with npm's ws.
func followJavaScript(t *testing.T, address string, folds []*clientFold) (state func() []foldedStream) {
	t.Helper()
	needs(t, "node")
	return followProgram(t, address, folds, "node", "testdata/client.mjs", consoleFolder+"/client/ledgerd.js")
}

// followPython has the Python client do so.
func followPython(t *testing.T, address string, folds []*clientFold) (state func() []foldedStream) {
	t.Helper()
	return followProgram(t, address, folds, python(t), "testdata/client.py", "../../httpd/client/python/ledgerd.py")
}

// python returns the words of an interpreter that has the package websockets.
func python(t *testing.T) string {
	t.Helper()
	return program(t, "python has no package websockets here: install python3-websockets", []string{"-c", "import websockets"}, "python3", "/usr/bin/python3")
}

// followProgram has a program follow that is handed its client library, the address, and a file of what to follow.
func followProgram(t *testing.T, address string, folds []*clientFold, words ...string) (state func() []foldedStream) {
	t.Helper()
	var wanted []map[string]any
	for _, f := range folds {
		wanted = append(wanted, map[string]any{"name": f.Name, "pubkeys": f.sub.Pubkeys, "programs": f.sub.Programs, "commitment": f.sub.Commitment})
	}
	text, err := json.Marshal(wanted)
	wishes := filepath.Join(t.TempDir(), "wanted.json")
	must(t, errors.Join(err, os.WriteFile(wishes, text, 0o600)))
	p := startProgram(t, "NODE_PATH="+os.Getenv("NODE_PATH")+":/usr/share/nodejs", append(words, address, wishes)...)
	if _, err := p.out.ReadString('\n'); err != nil {
		_ = p.Wait()
		said := fmt.Sprint(p.Stderr)
		if strings.Contains(said, "Cannot find module 'ws'") {
			t.Skip("node has no package ws here: install node-ws, or name its folder in NODE_PATH")
		}
		t.Fatalf("%s does not follow: %v\n%s", words[0], err, said)
	}
	return func() (states []foldedStream) {
		p.tell(t, &states)
		for i, f := range folds {
			states[i].pubkeys = f.sub.Pubkeys
		}
		return states
	}
}

// pipedProgram is a program whose standard input and output a test holds.
type pipedProgram struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProgram starts one with something more in its environment. It ends with its input, at the latest with the test.
func startProgram(t *testing.T, more string, words ...string) *pipedProgram {
	t.Helper()
	c := exec.Command(words[0], words[1:]...)
	c.Env, c.Stderr = append(os.Environ(), more), new(bytes.Buffer)
	in, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	must(t, errors.Join(err, err2, c.Start()))
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	return &pipedProgram{c, in, bufio.NewReader(out)}
}

// tell has the program tell the state that it prints for a line.
func (p *pipedProgram) tell(t *testing.T, state any) {
	t.Helper()
	_, err := p.in.Write([]byte{'\n'})
	line, err2 := p.out.ReadBytes('\n')
	if err := errors.Join(err, err2, json.Unmarshal(line, state)); err != nil {
		_ = p.in.Close()
		_ = p.Wait()
		t.Fatalf("%q tells %q: %v\n%s", p.Args, line, err, p.Stderr)
	}
}

// accountState is an account as REST lists it.
type accountState struct {
	Pubkey, Owner string
	Lamports      uint64
	Data          string // "" where it is not asked for
}

// shown writes an account as the programs of the clients do.
func shown(a accountState) string {
	text := fmt.Sprint(a.Lamports, " ", a.Owner)
	if a.Data != "" {
		text += " " + a.Data
	}
	return text
}

// place is a point of a ledger at which a node can stand.
type place struct{ slot, seq uint64 }
