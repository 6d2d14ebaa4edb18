package budget

import (
	"net/netip"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// F47: as memory runs short, refusals come in the order of the package comment.
func TestTheOrderOfRefusals(t *testing.T) {
	const eighth = 1000
	for _, tt := range []struct {
		held                                          int // by sockets
		fetches, answers, snapshots, large, newcomers bool
	}{
		{3999, true, true, true, true, true},
		{4001, false, true, true, true, true},
		{5001, false, false, true, true, true},
		{6001, false, false, false, false, true},
		{7001, false, false, false, false, false},
	} {
		b := New(8 * eighth)
		b.Sockets.Hold(tt.held)
		b.Answers.Hold(2 * eighth) // more than its own part
		b.Sockets.Hold(-2 * eighth)
		for what, is := range map[string][2]bool{
			"fetches":        {b.MayFetch(), tt.fetches},
			"answers":        {b.Answers.Take(0), tt.answers},
			"snapshots":      {b.Sockets.Take(0), tt.snapshots},
			"a large socket": {b.Sockets.Allows(eighth), tt.large},
			"a newcomer":     {b.Sockets.Allows(1), tt.newcomers},
		} {
			ledgertest.Equal(t, is[0], is[1], "%d bytes held: %s", tt.held, what)
		}
	}
}

// Whatever sockets hold, some answers are made; and all together never take more than the limit.
func TestAnswersHaveAPartOfTheirOwn(t *testing.T) {
	b := New(8000)
	for b.Sockets.Allows(100) {
		b.Sockets.Hold(100)
	}
	made := 0
	for b.Answers.Take(100) {
		made++
	}
	if made != 10 || b.Used() > b.Limit() || b.Used() < b.Limit()-200 {
		t.Errorf("%d answers are made, and %d bytes are held of %d; want 10, and nearly all", made, b.Used(), b.Limit())
	}
	b.Answers.Hold(-1000)
	ledgertest.Equal(t, b.Answers.Used(), 0, "bytes that are held for nobody")
}

// What begins stops where memory runs short; what has begun goes on, also where many hold as much as is left.
func TestWhatHasBegunFindsRoomToGoOn(t *testing.T) {
	b := New(8000)
	begun := 0
	for b.Sockets.Take(800) {
		begun++
	}
	if begun != 7 || b.Used() != 5600 {
		t.Fatalf("%d began and use %d bytes, want 7 and 5600", begun, b.Used())
	}
	b.Sockets.Hold(400)
	if !b.Sockets.Allows(800) || !b.Sockets.Allows(6000) {
		t.Error("a socket is refused while there is room for what begins")
	}
	b.Sockets.Hold(400)
	if !b.Sockets.Allows(600) || b.Sockets.Allows(601) {
		t.Error("where memory runs short a socket may hold as much as is left, and no more")
	}
}

// A client has an eighth, or one thing that is larger, and what it gives back it may take again.
func TestAClientHasAShare(t *testing.T) {
	b := New(8000)
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for _, step := range []struct {
		client    netip.Addr
		take      int
		hold, all int64
		ok        bool
	}{
		{one, 700, 0, 700, true},
		{one, 301, 0, 700, false},
		{one, 300, 0, 1000, true},
		{other, 3000, 0, 4000, true}, // larger than its share
		{other, 1, 0, 4000, false},
		{one, 0, -600, 3400, true}, // it is made, and smaller
		{one, 600, 0, 4000, true},
		{other, 1, -3000, 1000, false},
		{other, 4001, 0, 1000, false}, // more than all may take
		{other, 4000, 0, 5000, true},
		{one, 0, -1000, 4000, true},
		{other, 0, -4000, 0, true},
	} {
		ok := step.take == 0 || b.Answers.TakeFor(step.client, step.take)
		b.Answers.HoldFor(step.client, int(step.hold))
		if ok != step.ok || b.Used() != step.all {
			t.Errorf("%+v: %v, and all hold %d", step, ok, b.Used())
		}
	}
	ledgertest.Equal(t, len(b.Answers.clients), 0, "clients that hold nothing")
}
