package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

func snapshotEnd(id string, slot ledger.Slot, seq ledger.Seq) string {
	return fmt.Sprintf(`{"type":"snapshot_end","id":%s,"slot":%d,"seq":%d}`, id, slot, seq)
}

func subscribed(id string, pubkeys, programs int, slot ledger.Slot, seq ledger.Seq) string {
	return fmt.Sprintf(`{"type":"subscribed","id":%s,"pubkeys":%d,"programs":%d,"slot":%d,"seq":%d}`, id, pubkeys, programs, slot, seq)
}

func TestSnapshotsTellTheLiveAccounts(t *testing.T) {
	n := serve(t, nil)
	a, b, c, other := account(1, 10, programA), account(2, 20, programB), account(3, 30, programB), account(4, 40, programA)
	bare := ledger.Account{Pubkey: key(6), Lamports: 60}
	n.script.block(1, a, b, c, other, account(5, 50, programB), bare)
	n.script.block(2, account(5, 0, programB)) // seq 7
	tests := []struct {
		names             string
		pubkeys, programs int
		accounts          []ledger.Account
	}{
		{`"pubkeys":` + list(key(1)), 1, 0, []ledger.Account{a}},
		{`"pubkeys":` + list(key(4), key(1), key(4)), 2, 0, []ledger.Account{a, other}},
		{`"pubkeys":` + list(key(6)), 1, 0, []ledger.Account{bare}},
		{`"pubkeys":` + list(key(5)), 1, 0, nil}, // closed
		{`"pubkeys":` + list(key(99)), 1, 0, nil},
		{`"programs":` + list(programB), 0, 1, []ledger.Account{b, c}},
		{`"programs":` + list(key(98)), 0, 1, nil},
		{`"programs":` + list(programB, key(98), programA), 0, 3, []ledger.Account{a, b, c, other}},
		{`"programs":` + list(programB) + `,"pubkeys":` + list(key(3), key(1), key(99)), 3, 1, []ledger.Account{a, b, c}},
		{`"pubkeys":[]`, 0, 0, nil}, // everything: there is no snapshot of that
	}
	for _, tt := range tests {
		plain, full := n.dial("?mode=none"), n.dial("?mode=none")
		plain.send(`{"type":"subscribe","id":"s","snapshot":true,%s}`, tt.names)
		full.send(`{"type":"subscribe","id":1,"snapshot":true,"extended":true,%s}`, tt.names)
		plain.expect(subscribed(`"s"`, tt.pubkeys, tt.programs, 2, 7))
		full.expect(subscribed("1", tt.pubkeys, tt.programs, 2, 7))
		for _, a := range tt.accounts {
			plain.expect(basicFrame(a, 2))
			full.expect(extendedFrame(a, 2, 7, "processed"))
		}
		plain.expect(snapshotEnd(`"s"`, 2, 7))
		full.expect(snapshotEnd("1", 2, 7))
		plain.quiet()
		full.quiet()
	}
}

func TestSnapshotsHaveASize(t *testing.T) {
	n := serve(t, nil)
	members := accounts(0, maxSnapshot, 1)
	n.script.block(1, members...)
	c := n.dial("?pubkeys=" + key(1).String())
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"programs":%s}`, list(programA))
	c.expect(subscribed("1", 1, 1, 1, maxSnapshot))
	for _, a := range members {
		c.expect(basicFrame(a, 1))
	}
	c.expect(snapshotEnd("1", 1, maxSnapshot))

	n.script.block(2, account(maxSnapshot, 1, programA))
	tooMany := `{"type":"error","id":2,"error":"Invalid request parameters","details":"more than 10000 accounts: read them from GET /api/accounts/program/{program_id} instead"}`
	for _, names := range []string{
		`"programs":` + list(programA), `"programs":` + list(programA) + `,"pubkeys":` + list(key(50_000)),
	} {
		c := n.dial("?pubkeys=" + key(1).String())
		slot := n.script.nextSlot()
		during := account(1, ledger.Lamports(slot), programA)
		asked := 0
		n.ledger.asked = func() error {
			if asked++; asked == 1 {
				n.script.block(slot, during, account(2, ledger.Lamports(slot), programA))
			}
			return nil
		}
		c.send(`{"type":"subscribe","id":2,"snapshot":true,"extended":true,%s}`, names)
		// Nothing has changed, and what came meanwhile is not lost.
		got := []string{c.next(), c.next()}
		if want := []string{basicFrame(during, slot), tooMany}; !slices.Equal(got, want) && !slices.Equal(got, []string{want[1], want[0]}) {
			t.Errorf("%s: told %q, want %q", names, got, want)
		}
		n.ledger.asked = nil
		n.script.block(slot+1, account(2, 9, programA), account(1, 9, programA))
		c.expect(basicFrame(account(1, 9, programA), slot+1))
		c.send(`{"type":"unsubscribe","id":3,"pubkeys":%s}`, list(key(77)))
		c.expect(`{"type":"unsubscribed","id":3,"pubkeys":1,"programs":0}`)
	}
}

// Who receives everything and then names accounts with a snapshot is told nothing twice.
func TestASnapshotEndsEverything(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA), account(2, 1, programA))
	n.ledger.asked = func() error {
		n.script.block(2, account(1, 2, programA), account(2, 2, programA))
		return nil
	}
	c := n.dial("")
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s}`, list(key(1)))
	c.expect(subscribed("1", 1, 0, 1, 2), basicFrame(account(1, 1, programA), 1), snapshotEnd("1", 1, 2), basicFrame(account(1, 2, programA), 2))
	c.quiet()
}

// What comes while a snapshot is read waits where clients that resume find it. Who has it no more is slow.
func TestASnapshotOutlivesWhatIsKept(t *testing.T) {
	n := serve(t, func(c *Config) { c.RecentBytes = 1 })
	n.script.block(1, account(1, 1, programA))
	n.ledger.asked = func() error {
		n.script.block(2, account(1, 2, programA))
		n.script.block(3, account(1, 3, programA))
		return nil
	}
	c := n.dial("?mode=none")
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s}`, list(key(1)))
	c.expect(subscribed("1", 1, 0, 1, 1), basicFrame(account(1, 1, programA), 1), snapshotEnd("1", 1, 1))
	c.endsWith(codeSlow, "slow consumer, last_seq=1")
}

func TestALedgerThatCannotAnswerASnapshot(t *testing.T) {
	broken := errors.New("a broken invariant")
	var goesOn ending
	again, internal := ending{1013, "memory runs short, try again"}, ending{1011, "internal error"}
	tests := map[string]struct {
		errs []error // of one question after the other
		end  ending
	}{
		"unavailable once":          {[]error{ledger.ErrUnavailable}, goesOn},
		"unavailable twice":         {[]error{ledger.ErrUnavailable, ledger.ErrMinSlot}, goesOn},
		"unavailable again":         {[]error{ledger.ErrUnavailable, ledger.ErrUnavailable, ledger.ErrUnavailable}, again},
		"the members unavailable":   {[]error{nil, ledger.ErrUnavailable, nil, ledger.ErrUnavailable, nil, ledger.ErrUnavailable}, again},
		"a fault":                   {[]error{broken}, internal},
		"a fault among the members": {[]error{nil, broken}, internal},
		"unavailable, then a fault": {[]error{ledger.ErrUnavailable, broken}, internal},
	}
	for name, tt := range tests {
		n := serve(t, nil)
		a := account(1, 10, programA)
		n.script.block(1, a)
		errs := tt.errs
		n.ledger.asked = func() error {
			if len(errs) == 0 {
				return nil
			}
			err := errs[0]
			errs = errs[1:]
			return err
		}
		c, other := n.dial("?mode=none"), n.dial("")
		c.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s,"programs":%s}`, list(key(1)), list(programA))
		if tt.end == goesOn {
			c.expect(subscribed("1", 1, 1, 1, 1), basicFrame(a, 1), snapshotEnd("1", 1, 1))
		} else if before, end := c.ends(); len(before) > 0 || end != tt.end {
			t.Errorf("%s: ended with %v after %q, want %v", name, end, before, tt.end)
		}
		n.script.block(2, a)
		other.expect(basicFrame(a, 2))
	}
}

// What is published between two tries belongs to the second.
func TestASnapshotBegunAnewIsExact(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA), account(2, 1, programA))
	asked := 0
	n.ledger.asked = func() error {
		if asked++; asked > 2 {
			n.script.block(ledger.Slot(asked+10), account(1, ledger.Lamports(asked+10), programA))
			return nil
		}
		n.script.block(ledger.Slot(asked+1), account(1, ledger.Lamports(asked+1), programA), account(2, ledger.Lamports(asked+1), programA))
		return ledger.ErrUnavailable
	}
	c := n.dial("?pubkeys=" + key(2).String())
	c.send(`{"type":"subscribe","id":1,"snapshot":true,"pubkeys":%s}`, list(key(1)))
	c.expect(basicFrame(account(2, 2, programA), 2), basicFrame(account(2, 3, programA), 3),
		subscribed("1", 2, 0, 3, 6), basicFrame(account(1, 3, programA), 3), snapshotEnd("1", 3, 6),
		basicFrame(account(1, 13, programA), 13))
	c.quiet()
}

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
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		t.Fatal(err)
	}
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
	for round := range 12 {
		level := ledger.Commitment(round % ledger.Commitments)
		r := rand.New(rand.NewPCG(uint64(round), 2))
		n := serve(t, nil)
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
		want := readUpdates(t, reference.settle())
		checkSnapshot(t, n, level, all.settle(), want, func(string) bool { return false }, func(string) bool { return true })
		checkSnapshot(t, n, level, some.settle(), want,
			func(k string) bool { return k == before.String() },
			func(k string) bool { return k == before.String() || k == named.String() })
	}
}

// checkSnapshot compares what a subscriber heard around a snapshot with all updates: old and
// wanted tell which it hears before and after.
func checkSnapshot(t *testing.T, n *node, level ledger.Commitment, frames []string, all []told, old, wanted func(key string) bool) {
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
	if !slices.Equal(got, want) {
		t.Fatalf("%v, snapshot at seq %d: told around it\n %q\nwant\n %q", level, at.Seq, got, want)
	}
	for _, u := range readUpdates(t, frames[from:to]) {
		if u.Slot != at.Slot || u.Seq != at.Seq {
			t.Errorf("%v: in a snapshot at slot %d, seq %d: %s", level, at.Slot, at.Seq, u.text)
		}
	}
	// The snapshot and what follows make the ledger.
	knows := heard{state: state{}}
	for _, u := range readUpdates(t, frames[from:]) {
		knows.fold(t, []string{u.text})
	}
	final := n.script.chain[n.script.levels[level]].state
	for k, a := range final {
		if wanted(k.String()) && !old(k.String()) && knows.state[k] != a {
			t.Fatalf("%v: account %v folded to %v, want %v", level, k, knows.state[k], a)
		}
	}
	for k := range knows.state {
		if _, ok := final[k]; !ok {
			t.Fatalf("%v: account %v is alive after folding, and not in the ledger", level, k)
		}
	}
}
