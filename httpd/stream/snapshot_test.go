package stream

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// told is a frame as a client reads it: the fields of all kinds there are.
type told struct {
	Type, Pubkey, Owner string
	Token               struct{ Owner string }
	Lamports            ledger.Lamports
	Slot                ledger.Slot
	Seq                 ledger.Seq
	ToSlot              ledger.Slot `json:"to_slot"`
	From                ledger.Seq  `json:"from_seq"`
	To                  ledger.Seq  `json:"to_seq"`
	Oldest              ledger.Seq  `json:"oldest_seq"`
	Newest              ledger.Seq  `json:"newest_seq"`

	text string
}

func parse(t testing.TB, text string) told {
	t.Helper()
	f := told{text: text}
	must(t, json.Unmarshal([]byte(text), &f))
	return f
}

// readUpdates returns the updates among frames.
func readUpdates(t testing.TB, frames []string) (updates []told) {
	t.Helper()
	for _, text := range frames {
		if f := parse(t, text); f.Type == "account_update" {
			updates = append(updates, f)
		}
	}
	return updates
}

// While blocks, forks and statuses come as fast as they can, subscribers take snapshots at
// every level: each gets the state at one slot and then exactly what follows it.
func TestSnapshotsAreExactWhileBlocksCome(t *testing.T) {
	for round := range ledgertest.Sample(12, 12, 6) {
		level := ledger.Commitment(round % ledger.Commitments)
		r := rand.New(rand.NewPCG(uint64(round), 2))
		inMemory(t, nil, func(n *node) {
			n.script.slots = 1
			n.script.block(1, account(0, 1, programA))
			n.ledger.asked = func() error {
				runtime.Gosched() // let more be published while the snapshot is read
				return nil
			}
			query := "?extended=true&commitment=" + level.String()
			reference := n.dial(query)
			before, named := key(3), key(5)
			all := n.dial(query + "&mode=none")
			some := n.dial(query + "&pubkeys=" + before.String())
			begun, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for step := range 300 {
					n.script.step(r)
					n.script.publish()
					if step == 50 {
						close(begun)
					}
				}
			}()
			<-begun
			all.send(`{"type":"subscribe","id":1,"snapshot":true,"programs":%s}`, list(ledger.SystemProgram, programA, programB))
			some.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s}`, list(named))
			<-done
			want := readUpdates(n, reference.settle())
			checkSnapshot(n, n, level, all.settle(), want, func(string) bool { return false }, func(string) bool { return true })
			checkSnapshot(n, n, level, some.settle(), want,
				func(k string) bool { return k == before.String() },
				func(k string) bool { return k == before.String() || k == named.String() })
		})
	}
}

// checkSnapshot compares what a subscriber heard around a snapshot with all updates: old and
// wanted tell which it hears before and after.
func checkSnapshot(t testing.TB, n *node, level ledger.Commitment, frames []string, all []told, old, wanted func(key string) bool) {
	t.Helper()
	from := slices.IndexFunc(frames, func(f string) bool { return strings.HasPrefix(f, `{"type":"subscribed"`) })
	to := slices.IndexFunc(frames, func(f string) bool { return strings.HasPrefix(f, `{"type":"snapshot_end"`) })
	if from < 0 || to < from {
		t.Fatalf("no snapshot in %q", frames)
	}
	at := parse(t, frames[to])
	var want []string
	for _, u := range all {
		if u.Seq <= at.Seq && old(u.Pubkey) || u.Seq > at.Seq && wanted(u.Pubkey) {
			want = append(want, u.text)
		}
	}
	var got []string
	for _, u := range readUpdates(t, slices.Concat(frames[:from], frames[to:])) {
		got = append(got, u.text)
	}
	ledgertest.Equal(t, got, want, "%v, snapshot at seq %d: told around it", level, at.Seq)
	for _, u := range readUpdates(t, frames[from:to]) {
		ledgertest.Equal(t, u.Slot, at.Slot, "%v: the slot in a snapshot: %s", level, u.text)
		ledgertest.Equal(t, u.Seq, at.Seq, "%v: the number in a snapshot: %s", level, u.text)
	}
	// The snapshot and what follows make the ledger.
	knows := heard{state: state{}}
	for _, u := range readUpdates(t, frames[from:]) {
		knows.fold(t, []string{u.text})
	}
	final := maps.Clone(n.script.chain[n.script.levels[level]].state)
	maps.DeleteFunc(final, func(k ledger.Pubkey, a ledger.Account) bool {
		_, known := knows.state[k] // if it was named before, perhaps
		return !wanted(k.String()) || old(k.String()) && !known
	})
	ledgertest.Equal(t, knows.state, final, "%v: what was folded", level)
}
