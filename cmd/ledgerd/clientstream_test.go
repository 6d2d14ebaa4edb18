package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientlib "ledgerd/httpd/client"
)

// cutter passes connections on to a node and cuts each after some bytes, wherever in a frame that is.
type cutter struct {
	listener net.Listener
	to       atomic.Pointer[string] // the node's address
	cuts     atomic.Int64
	running  sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	left   int // cuts that are still to be made
}

func newCutter(t *testing.T, random *rand.Rand, cuts int) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, random: random, left: cuts}
	c.running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			c.running.Go(func() { c.pass(from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.running.Wait()
	})
	return c
}

// length returns how many bytes a connection lives; ok: it is to be cut.
func (c *cutter) length() (bytes int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return 0, false
	}
	c.left--
	return c.random.Int64N(1 << (8 + c.random.IntN(8))), true
}

func (c *cutter) isThrough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left == 0
}

func (c *cutter) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", *c.to.Load())
	if err != nil {
		return
	}
	defer to.Close()
	var asking sync.WaitGroup
	asking.Go(func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	})
	if bytes, cut := c.length(); cut {
		_, err = io.CopyN(from, to, bytes)
		if err == nil {
			c.cuts.Add(1)
		}
	} else {
		_, err = io.Copy(from, to)
	}
	if err == nil {
		_ = from.(*net.TCPConn).SetLinger(0) // as a host does that lost the connection
	}
	_ = from.Close()
	asking.Wait()
}

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
func (f *foldedStream) differs(all map[string]accountRecord) error {
	if f.Starts == 0 {
		return errors.New("it has not begun")
	}
	told := map[string]bool{}
	for _, a := range f.Accounts {
		told[a.Pubkey] = true
		if held, ok := all[a.Pubkey]; ok != (a.Lamports != 0) || ok && (fmt.Sprint(a.Lamports) != held.Lamports.String() || a.Owner != held.Owner) {
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

	mu       sync.Mutex
	accounts map[string]clientlib.Update
	seq      uint64 // of the newest update
	starts   int
	listing  bool
	wrong    string
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
			})
		},
		Ready:  func() { f.locked(func() { f.listing = false }) },
		Update: func(u clientlib.Update) { f.locked(func() { f.update(u) }) },
	}
}

// update folds an update. At the processed level numbers rise, and those of everything have no holes.
func (f *clientFold) update(u clientlib.Update) {
	whole := f.sub.Programs == nil
	if !f.listing && f.sub.Commitment == clientlib.Processed && (u.Seq <= f.seq || whole && u.Seq != f.seq+1) {
		f.wrong = cmp.Or(f.wrong, fmt.Sprintf("number %d comes after %d", u.Seq, f.seq))
	}
	f.accounts[u.Pubkey], f.seq = u, u.Seq
}

// followGo has the Go client follow a node. What is returned tells what its streams add up to.
func followGo(t *testing.T, address string) (state func() []foldedStream) {
	t.Helper()
	library, err := clientlib.New(address, clientlib.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		following.Wait()
	})
	var folds []*clientFold
	for _, level := range []clientlib.Commitment{clientlib.Processed, clientlib.Confirmed, clientlib.Finalized} {
		for name, programs := range map[string][]string{"everything": nil, "programs": simPrograms} {
			f := &clientFold{name: name + ", " + string(level), sub: clientlib.Subscription{Programs: programs, Commitment: level}}
			folds = append(folds, f)
			following.Go(func() {
				if err := library.Stream(ctx, f.sub, f.handler()); ctx.Err() == nil {
					f.locked(func() { f.wrong = cmp.Or(f.wrong, fmt.Sprint("the stream ended: ", err)) })
				}
			})
		}
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
func followJavaScript(t *testing.T, address string) (state func() []foldedStream) {
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
	if err := errors.Join(err, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
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

// F1: streams of the client libraries, whose connections are cut at random bytes while blocks are undone and the node is killed, add up to
// what REST answers, and tell no number twice and none never.
func TestClientsFollowThroughCutsAndKills(t *testing.T) {
	for name, follow := range map[string]func(*testing.T, string) func() []foldedStream{"Go": followGo, "JavaScript": followJavaScript} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random, seed := seededRand(t)
			cuts := repetitions(t, "LEDGERD_CLIENT_CUTS", 40)
			source := fmt.Sprintf("sim:seed=%d,skip_rate=0.1,finality=8,fork_rate=0.2,accounts=300,tps=400,slot_time=16ms,slots=%d", seed, max(300, 3*cuts))
			dir := t.TempDir()
			c := newCutter(t, random, cuts)
			start := func() *victim {
				v := launch(t, "--data-dir", dir, "--source", source, "--snapshot-interval", "0s", "--rate-limit-exempt", "127.0.0.0/8", "--log-level", "info").ready()
				address := strings.TrimSuffix(strings.TrimPrefix(v.base, "http://"), "/api")
				c.to.Store(&address)
				return v
			}
			node := start()
			state := follow(t, "http://"+c.listener.Addr().String())
			for kill := range 3 {
				node.until("some cuts are made", func() bool { return c.isThrough() || c.cuts.Load() > int64((kill+1)*cuts/8) })
				node.Kill()
				node = start()
			}
			node.until("the cuts are made", c.isThrough)
			node.untilWithin(2*patience, "the input ends", func() bool { return endOfInput.MatchString(node.errs.String()) })
			all := map[string]map[string]accountRecord{}
			for _, level := range levels {
				all[level], _ = node.accounts(level, true)
			}
			var folds []foldedStream
			var differs error
			defer func() {
				if t.Failed() {
					t.Log(differs)
				}
			}()
			node.until("the streams are what REST answers", func() bool {
				folds, differs = state(), nil
				for i := range folds {
					_, level, _ := strings.Cut(folds[i].Name, ", ")
					differs = errors.Join(differs, folds[i].differs(all[level]))
				}
				return differs == nil
			})
			for _, f := range folds {
				if t.Logf("%s: %d starts, %d accounts", f.Name, f.Starts, len(f.Accounts)); f.Wrong != "" {
					t.Errorf("%s: %s", f.Name, f.Wrong)
				}
			}
			t.Logf("%d connections cut", c.cuts.Load())
		})
	}
}
