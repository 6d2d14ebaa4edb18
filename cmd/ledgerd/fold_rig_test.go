package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// foldRig is a ledger with forks that ends, the nodes that tell it one after the other, and
// clients of all kinds that fold what they are told.
type foldRig struct {
	*testing.T
	random  *rand.Rand
	source  string
	dir     string
	dialers map[string]dialer
	missing map[string]string // kinds that are not there, and why
	node    *victim

	// choose returns the address of one of several nodes, "" where none is ready; nil: there is one
	// node at a time.
	choose func() string

	followers []*follower
	bases     map[string]map[string]accountRecord // by level, by key

	mu    sync.Mutex
	base  string
	moved chan struct{} // closed when base changes, and when all is over
	ends  map[string]place
	over  bool // nobody comes back any more
}

// newFoldRig prepares everything, so that the clients join soon after the node has begun.
// source completes what the simulator is told.
func newFoldRig(t *testing.T, source string) *foldRig {
	t.Helper()
	random, seed := dice(t)
	r := &foldRig{
		T: t, random: random, dir: t.TempDir(), moved: make(chan struct{}),
		source: fmt.Sprintf("sim:seed=%d,skip_rate=0.1,finality=8,%s", seed, source),
	}
	r.dialers, r.missing = kinds(t)
	return r
}

// launch starts a node on the directory, whose log goes back to the beginning.
func (r *foldRig) launch() {
	r.Helper()
	r.node = launch(r, "--data-dir", r.dir, "--source", r.source, "--snapshot-interval", "0s", "--rate-limit-exempt", "127.0.0.0/8", "--log-level", "info").ready()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base = r.node.base
	close(r.moved)
	r.moved = make(chan struct{})
}

// hide keeps the node's address from those who look for it, until there is another node.
func (r *foldRig) hide() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.base = ""
}

// where returns the newest node's address, if it is not hidden, and what is closed when there is another one.
func (r *foldRig) where() (base string, moved chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.choose == nil {
		return r.base, r.moved
	}
	moved = make(chan struct{})
	time.AfterFunc(chooseAgain, func() { close(moved) })
	return r.choose(), moved
}

// chooseAgain is after how long another node is looked for.
const chooseAgain = 20 * time.Millisecond

// giveUp keeps followers from coming back.
func (r *foldRig) giveUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.over = true
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

// isOver reports whether nobody is to come back any more.
func (r *foldRig) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// goesOn reports whether the ledger may go on.
func (r *foldRig) goesOn() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends == nil
}

// endSeq returns the number at which the ledger ended.
func (r *foldRig) endSeq() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ends["processed"].seq
}

// isEnd reports whether a level ends at a place.
func (r *foldRig) isEnd(level string, p place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	end, known := r.ends[level]
	return known && p == end
}

// follow lets a follower begin. What it is told must be true until the rig's end.
func (r *foldRig) follow(kind string, f *follower) {
	r.Helper()
	open := r.dialers[kind]
	if open == nil {
		return
	}
	what := "whole"
	if len(f.programs)+len(f.pubkeys) > 0 {
		what = fmt.Sprintf("%d programs and %d pubkeys", len(f.programs), len(f.pubkeys))
	}
	for option, on := range map[string]bool{"literal": f.literal, "snapshot": f.snapshot, "conflate": f.conflate} {
		if on {
			what += ", " + option
		}
	}
	f.TB, f.rig, f.open, f.name = r.T, r, open, fmt.Sprintf("%s, %s, %s", kind, f.level, what)
	f.random = rand.New(rand.NewPCG(r.random.Uint64(), 0))
	f.joined, f.done = make(chan struct{}), make(chan struct{})
	f.state.Whole = f.isFull() && f.level == "processed"
	f.known = f.start
	r.followers = append(r.followers, f)
	go f.follow()
	r.Cleanup(func() { // after a failure it may still wait for its socket, or come back again
		r.giveUp()
		f.mu.Lock()
		if f.conn != nil {
			f.conn.cut()
		}
		f.mu.Unlock()
		<-f.done
	})
}

// readBase reads what REST lists at each level. Nothing a follower is told can be missing from it
// and from the frames both: what changes afterwards is told, and what was told before and not
// again is what is listed.
func (r *foldRig) readBase() {
	r.Helper()
	for _, f := range r.followers {
		if f.start {
			continue // it is told everything
		}
		select {
		case <-f.joined:
		case <-f.done:
			r.FailNow()
		case <-time.After(patience):
			r.Fatalf("%s: no answer within %v", f.name, patience)
		}
	}
	r.bases = map[string]map[string]accountRecord{}
	for _, level := range levels {
		r.bases[level], _ = r.accounts(level, false)
	}
}

// accounts returns all accounts of a level and the slot they are of, which is one if the ledger
// stands still.
func (r *foldRig) accounts(level string, still bool) (all map[string]accountRecord, slot string) {
	r.Helper()
	all = map[string]accountRecord{}
	for _, program := range simPrograms {
		a := r.node.get("/accounts/program/" + program + "?limit=10000&commitment=" + level)
		var list programList
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != http.StatusOK || list.NextCursor != nil {
			r.Fatalf("accounts of %s: %d %.300s", program, a.status, a.body)
		}
		if here := a.header.Get("X-Ledger-Slot"); still && slot != "" && here != slot {
			r.Fatalf("the ledger has ended, and lists are of slots %s and %s", slot, here)
		}
		slot = a.header.Get("X-Ledger-Slot")
		for _, account := range list.Accounts {
			if before, twice := all[account.Pubkey]; still && twice {
				r.Fatalf("%+v is also listed as %+v", account, before)
			}
			all[account.Pubkey] = account
		}
	}
	return all, slot
}

// finish waits for the end of the ledger, lets the followers hear all of it, and compares.
func (r *foldRig) finish() {
	r.Helper()
	if r.choose == nil {
		r.node.untilWithin(2*patience, "the input ends", func() bool { return endOfInput.MatchString(r.node.errs.String()) })
	}
	ends := map[string]place{}
	for _, level := range levels {
		conn, err := dialOwn("ws"+strings.TrimPrefix(r.node.base, "http")+"/ws/accounts?mode=none&commitment="+level, false)
		if err != nil {
			r.Fatal(err)
		}
		defer conn.cut()
		if err := conn.say(pingText); err != nil {
			r.Fatal(err)
		}
		text, err := conn.read()
		if err != nil {
			r.Fatal(err)
		}
		var p spoken
		if err := json.Unmarshal(text, &p); err != nil || p.Type != "pong" {
			r.Fatalf("a ping is answered with %q", text)
		}
		ends[level] = place{p.Slot, p.Seq}
	}
	r.mu.Lock()
	r.ends = ends
	r.mu.Unlock()
	r.Logf("the ledger ends at %+v", ends)
	late := time.After(2 * patience)
	for _, f := range r.followers {
		for again := time.NewTicker(100 * time.Millisecond); ; {
			f.ask()
			select {
			case <-f.done:
			case <-again.C:
				continue
			case <-late:
				r.Fatalf("%s: it does not hear of the end\n%s", f.name, r.node.errs)
			}
			again.Stop()
			break
		}
	}
	if r.Failed() {
		r.FailNow()
	}
	r.compare(ends)
}

// compare holds all followers against REST, kind by kind.
func (r *foldRig) compare(ends map[string]place) {
	all := map[string]map[string]accountRecord{}
	for _, level := range levels {
		accounts, slot := r.accounts(level, true)
		if want := fmt.Sprint(ends[level].slot); slot != want {
			r.Fatalf("%s ends at slot %s to REST, at %s to sockets", level, slot, want)
		}
		all[level] = accounts
		r.checkSingly(level, accounts)
		r.checkUpdates(level)
	}
	for _, kind := range []string{"own", "library", "ws"} {
		r.Run(kind, func(t *testing.T) {
			if why := r.missing[kind]; why != "" {
				t.Skip(why)
			}
			for _, f := range r.followers {
				if strings.HasPrefix(f.name, kind+",") {
					f.TB = t
					f.check(r.bases[f.level], all[f.level])
				}
			}
		})
	}
}

// checkUpdates holds those who were told every update of a level against each other: they have heard the same texts under the same
// numbers, whoever was told them at once and whoever on coming back.
func (r *foldRig) checkUpdates(level string) {
	r.Helper()
	var full []*follower
	from := uint64(0)
	for _, f := range r.followers {
		if f.level == level && f.isFull() {
			full = append(full, f)
			from = max(from, f.from)
		}
	}
	for _, f := range full {
		f.updates = f.updates[sort.Search(len(f.updates), func(i int) bool { return f.updates[i].seq > from }):]
		first := full[0].updates
		for i := range min(len(f.updates), len(first)) {
			if f.updates[i] != first[i] {
				r.Errorf("%s: after number %d update %d is told, to %s %d, and not in the same words", f.name, from, f.updates[i].seq, full[0].name, first[i].seq)
				break
			}
		}
		if len(f.updates) != len(first) {
			r.Errorf("%s: %d updates after number %d; %s: %d", f.name, len(f.updates), from, full[0].name, len(first))
		}
	}
}

// checkSingly asks for accounts one by one, those among them that are closed: the answers are
// those of the lists.
func (r *foldRig) checkSingly(level string, all map[string]accountRecord) {
	r.Helper()
	var keys []string
	for _, f := range r.followers {
		if f.level != level {
			continue
		}
		live, closed := 0, 0
		for key := range f.state.Accounts {
			if _, there := all[key]; there && live < someKeys {
				live++
				keys = append(keys, key)
			} else if !there && closed < someKeys {
				closed++
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	closed := 0
	for _, key := range slices.Compact(keys) {
		a := r.node.get("/account/" + key + "?commitment=" + level)
		want, there := all[key]
		var got accountRecord
		switch {
		case !there && a.status == http.StatusNotFound:
			closed++
		case !there || a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &got) != nil || got != want:
			r.Errorf("account %s at level %s: %d %s; the lists have it: %v, %+v", key, level, a.status, a.body, there, want)
		}
	}
	if closed == 0 {
		r.Errorf("no account was closed at level %s: the test shows less than it says", level)
	}
}

// seq returns the newest number of the node.
func (r *foldRig) seq() uint64 {
	a, err := r.node.ask(r.node.ops + "/metrics")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(a.body, "\nledgerd_seq ")
	digits, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseUint(digits, 10, 64)
	return n
}

// isConnected reports whether the kernel has a connection at a local port. One that was reset is
// gone, though nobody has read from it. Connections that ended to somewhere else may linger at the
// same port.
func isConnected(t testing.TB, port int) bool {
	for range 10 { // the table is read in pieces, and may lack one where others end meanwhile
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Error(err)
			return false
		}
		for line := range strings.Lines(string(table)) {
			// sl, local address, remote address, state (01: established)
			fields := strings.Fields(line)
			if len(fields) > 3 && fields[1] == fmt.Sprintf("0100007F:%04X", port) && fields[3] == "01" {
				return true
			}
		}
	}
	return false
}
