package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/proc"
)

// foldRig is a ledger with forks that ends, the nodes that tell it one after the other, and
// clients of all kinds that fold what they are told.
type foldRig struct {
	*testing.T
	*course
	random  *rand.Rand
	source  string
	dir     string
	dialers map[string]dialer
	missing map[string]string // kinds that are not there, and why
	node    *victim

	followers []*follower
	bases     map[string]map[string]accountRecord // by level, by key
}

// newFoldRig prepares everything, so that the clients join soon after the node has begun.
// source completes what the simulator is told.
func newFoldRig(t *testing.T, source string) *foldRig {
	t.Helper()
	random, seed := seededRand(t)
	r := &foldRig{
		T: t, course: newCourse(nil), random: random, dir: t.TempDir(),
		source: fmt.Sprintf("sim:seed=%d,skip_rate=0.1,finality=8,%s", seed, source),
	}
	r.dialers, r.missing = dialers(t)
	return r
}

// launch starts a node on the directory, whose log goes back to the beginning.
func (r *foldRig) launch() {
	r.Helper()
	r.node = launch(r, "--data-dir", r.dir, "--source", r.source, "--snapshot-interval", "0s", "--rate-limit-exempt", "127.0.0.0/8", "--log-level", "info").ready()
	r.goTo(r.node.base)
}

// follow lets a follower begin. What it is told must be true until the rig's end.
func (r *foldRig) follow(kind string, f *follower) {
	r.Helper()
	f.TB, f.course, f.open = r.T, r.course, r.dialers[kind]
	f.name = fmt.Sprintf("%s, %s, %d programs and %d pubkeys, literal %v, snapshot %v, conflate %v",
		kind, f.level, len(f.programs), len(f.pubkeys), f.literal, f.snapshot, f.conflate)
	f.random = rand.New(rand.NewPCG(r.random.Uint64(), 0))
	r.followers = append(r.followers, f)
	f.begin()
	r.Cleanup(func() { f.end(true) }) // after a failure it may still wait for its socket, or come back again
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
		r.bases[level], _ = r.node.accounts(level, false)
	}
}

// passRoot waits until every follower has heard of a number from which a node that is started again can go on: its log begins with the
// first final block, and serves resumes from what was the newest number then. That lies well below slot 30.
func (r *foldRig) passRoot() {
	r.Helper()
	r.node.until("slot 30 is final", func() bool { return r.node.metric(`ledgerd_slot{commitment="finalized"}`) >= 30 })
	final := standsAt(r, r.node.base, "finalized")
	for _, f := range r.followers {
		r.node.until(f.name+" hears of a final block", func() bool { return f.told() >= final.seq })
	}
}

// accounts returns all accounts of a level and the slot they are of, which is one if the ledger
// stands still.
func (v *victim) accounts(level string, still bool) (all map[string]accountRecord, slot string) {
	v.Helper()
	all = map[string]accountRecord{}
	for _, program := range simPrograms {
		a := v.get("/accounts/program/" + program + "?limit=10000&commitment=" + level)
		var list programList
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || a.status != http.StatusOK || list.NextCursor != nil {
			v.Fatalf("accounts of %s: %d %.300s", program, a.status, a.body)
		}
		if here := a.header.Get("X-Ledger-Slot"); still && slot != "" && here != slot {
			v.Fatalf("the ledger has ended, and lists are of slots %s and %s", slot, here)
		}
		slot = a.header.Get("X-Ledger-Slot")
		for _, account := range list.Accounts {
			if before, twice := all[account.Pubkey]; still && twice {
				v.Fatalf("%+v is also listed as %+v", account, before)
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
		ends[level] = standsAt(r, r.node.base, level)
	}
	r.endAt(ends)
	r.Logf("the ledger ends at %+v", ends)
	late := time.After(2 * patience)
	for _, f := range r.followers {
		f.awaitEnd(late)
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
		accounts, slot := r.node.accounts(level, true)
		if want := fmt.Sprint(ends[level].slot); slot != want {
			r.Fatalf("%s ends at slot %s to REST, at %s to sockets", level, slot, want)
		}
		all[level] = accounts
		r.checkUpdates(level)
	}
	for _, kind := range clientKinds {
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

// checkUpdates holds those who were told everything of a level against each other.
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
		n, want := sameFrames(r, f.name, full[0].name, from, f.runs[len(f.runs)-1], full[0].runs[len(full[0].runs)-1])
		if n != want {
			r.Errorf("%s: %d frames after number %d; %s: %d", f.name, n, from, full[0].name, want)
		}
	}
}

// nodeSeq returns the newest number of the node, 0 where it does not answer.
func (r *foldRig) nodeSeq() uint64 {
	all, err := proc.Scrape(r.node.client, r.node.ops)
	if err != nil {
		return 0
	}
	return uint64(all["ledgerd_seq"])
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
