package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	clientlib "ledgerd/httpd/client"
)

// ledgerSums adds up the lamports of every program at every finalized slot that was seen. In
// the simulator's ledger nothing is ever created or lost.
type ledgerSums struct {
	mu    sync.Mutex
	slots map[string]map[string]string // slot, then program: its list as it was answered
}

// saw notes a whole list; at one finalized slot it must always be the same.
func (l *ledgerSums) saw(t *testing.T, slot, program, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slots[slot] == nil {
		l.slots[slot] = map[string]string{}
	}
	if before, ok := l.slots[slot][program]; ok && before != body {
		t.Errorf("program %s was answered in two ways at the finalized slot %s", program, slot)
	}
	l.slots[slot][program] = body
}

// check compares the sums of all slots at which every program was seen, and returns how many
// there were.
func (l *ledgerSums) check(a *api) (complete int) {
	want := uint64(0)
	for slot, programs := range l.slots {
		if len(programs) < len(simPrograms) {
			continue
		}
		complete++
		sum := uint64(0)
		for _, body := range programs {
			for _, record := range decode[programList](a, answer{body: body}).Accounts {
				sum += number(record.Lamports)
			}
		}
		if want == 0 {
			want = sum
		}
		if sum != want || sum == 0 {
			a.Errorf("all accounts hold %d lamports at slot %s, and %d at another", sum, slot, want)
		}
	}
	return complete
}

// Clients poll everything while the simulator runs flat out, with forks.
func TestAnswersUnderLoadAreWholeAndAddUp(t *testing.T) {
	slots := sample(300, 100)
	r := start(t, "--data-dir", t.TempDir(), "--shards", "3", "--source",
		fmt.Sprintf("sim:accounts=2000,slot_time=0,fork_rate=0.2,tps=100,slots=%d", slots))
	a := dial(t, r)
	sums := &ledgerSums{slots: map[string]map[string]string{}}
	var ended atomic.Bool
	var clients sync.WaitGroup
	c, err := clientlib.New(r.base, clientlib.Options{HTTP: a.client})
	if err != nil {
		t.Fatal(err)
	}
	keys := sampleKeys(t, c)
	for client := range 8 {
		clients.Go(func() {
			// One more round after the end sees the ledger at rest.
			for round, last := client, false; !last && !t.Failed(); round++ {
				last = ended.Load()
				read := clientlib.Read{Commitment: clientlib.Commitment(levels[round%len(levels)])}
				switch client % 4 {
				case 0:
					pollKeys(t, c, keys, read)
				case 1:
					pollPrograms(t, a, sums)
				case 2:
					pollPages(t, c, simPrograms[round%len(simPrograms)], read)
				case 3:
					pollRecent(t, c, read)
				}
			}
		})
	}
	r.errs.await(t, "end of input")
	ended.Store(true)
	clients.Wait()
	if complete := sums.check(a); complete == 0 {
		t.Error("no slot was seen whole")
	}
	if latest := called(c.LatestBlock(t.Context(), clientlib.Read{})).ok(t); latest.Slot+10 < uint64(slots) {
		t.Errorf("the input of %d slots ended at slot %d", slots, latest.Slot)
	}
	if code := r.stop(); code != exitOK {
		t.Errorf("exit code %d, want 0:\n%s", code, r.errs)
	}
}

func sampleKeys(t *testing.T, c *clientlib.Client) (keys []string) {
	for _, program := range simPrograms {
		list := called(c.Program(t.Context(), program, clientlib.Page{Limit: 60}, clientlib.Read{Commitment: clientlib.Finalized})).ok(t)
		for _, record := range list.Accounts {
			keys = append(keys, record.Pubkey)
		}
	}
	return keys
}

// pollKeys asks for many accounts at once. Those that are there come in the order asked.
func pollKeys(t *testing.T, c *clientlib.Client, keys []string, read clientlib.Read) {
	some := make([]string, 50)
	for i := range some {
		some[i] = keys[rand.IntN(len(keys))]
	}
	got := called(c.Accounts(t.Context(), some, read)).ok(t).Accounts
	if len(got) != len(some) {
		t.Errorf("%d accounts for %d keys", len(got), len(some))
		return
	}
	for i, record := range got {
		if record != nil && (record.Pubkey != some[i] || record.Lamports == 0) {
			t.Errorf("key %s was answered with %+v", some[i], *record)
		}
	}
}

// pollPrograms asks for all accounts of all programs, one after the other.
func pollPrograms(t *testing.T, a *api, sums *ledgerSums) {
	a.Helper()
	for _, program := range simPrograms {
		list := a.ok("/accounts/program/" + program + "?limit=10000&commitment=finalized")
		sums.saw(t, list.header.Get("X-Ledger-Slot"), program, list.body)
	}
}

// pollPages reads a list in pages while it changes: keys only rise.
func pollPages(t *testing.T, c *clientlib.Client, program string, read clientlib.Read) {
	last := ""
	for cursor := new(string); cursor != nil; {
		page := called(c.Program(t.Context(), program, clientlib.Page{Cursor: *cursor, Limit: 150}, read)).ok(t)
		for _, record := range page.Accounts {
			if last != "" && string(keyBytes(record.Pubkey)) <= string(keyBytes(last)) {
				t.Errorf("program %s: %s comes after %s", program, record.Pubkey, last)
			}
			if last = record.Pubkey; record.Owner != program {
				t.Errorf("program %s lists %s of %s", program, record.Pubkey, record.Owner)
			}
		}
		cursor = page.NextCursor
	}
}

// pollRecent pages through transactions from a finalized one on, which nothing can undo.
func pollRecent(t *testing.T, c *clientlib.Client, read clientlib.Read) {
	seen := map[string]bool{}
	slot := uint64(math.MaxUint64)
	for before := new(string); before != nil && len(seen) < 160; {
		page := called(c.Recent(t.Context(), clientlib.RecentPage{Before: *before, Limit: 40}, clientlib.Read{Commitment: clientlib.Finalized})).ok(t)
		for _, x := range page.Transactions {
			if seen[x.Signature] || x.Slot > slot {
				t.Errorf("transaction %s of slot %d comes twice or after slot %d", x.Signature, x.Slot, slot)
			}
			seen[x.Signature], slot = true, x.Slot
		}
		before = page.NextBefore
	}
	called(c.Recent(t.Context(), clientlib.RecentPage{Limit: 40}, read)).ok(t)
	called(c.LatestBlock(t.Context(), read)).ok(t)
}
