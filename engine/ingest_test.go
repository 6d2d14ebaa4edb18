package engine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
)

// TestIngestPausesWhileTooMuchIsUnfinalized shows more than 1 GiB of blocks without finality:
// the newest are held back until a status makes room, and then nothing of them is lost.
func TestIngestPausesWhileTooMuchIsUnfinalized(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2, Retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 40}})
		defer n.mustStop()
		root := rootBlock(100)
		n.send(root)
		var blocks []*ledger.Block
		parent := root
		for slot := ledger.Slot(101); slot <= 104; slot++ {
			parent = huge(child(parent, slot, 0, lamports(key(1), ledger.Lamports(slot))), 300<<20)
			blocks = append(blocks, parent)
			n.send(parent)
		}
		held := chainOf(parent, 3)
		n.send(events(held...)...)
		if why := n.Status().Unhealthy; !strings.Contains(why, "unfinalized") {
			t.Errorf("health says %q, want that too much is unfinalized", why)
		}
		if tip := n.Head().Tip(ledger.Processed).Slot; tip != 104 {
			t.Errorf("ingest stands at slot %d, want it held back at 104", tip)
		}
		if a, _, err := n.Account(ledger.Query{}, key(1)); err != nil || a.Lamports != 104 {
			t.Errorf("reads do not go on: %d lamports, %v", a.Lamports, err)
		}
		n.send(status(held[2], ledger.StatusDead)) // of a block that is held back
		n.send(status(blocks[2], ledger.StatusFinalized))
		if why := n.Status().Unhealthy; why != "" {
			t.Errorf("health says %q after a status made room", why)
		}
		if tip := n.Head().Tip(ledger.Processed).Slot; tip != 106 {
			t.Errorf("ingest stands at slot %d, want 106: 107 is dead", tip)
		}
	})
}

// TestInputThatEndsHeldBackIsNotLostSilently ends the input while blocks wait for finality.
func TestInputThatEndsHeldBackIsNotLostSilently(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, finite(), Config{Shards: 1, Retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 40}})
		root := rootBlock(100)
		n.send(root, status(root, ledger.StatusFinalized)) // it speaks of finality, and stops to
		parent := root
		for slot := ledger.Slot(101); slot <= 105; slot++ {
			parent = huge(child(parent, slot, 0), 300<<20)
			n.send(parent)
		}
		n.endInput()
		if why := n.Status().Unhealthy; !strings.Contains(why, "input ended with 1 events held back") {
			t.Errorf("health says %q, want that the input ended with an event held back", why)
		}
		n.mustStop()
	})
}

// TestIngestStopsWhereNothingIsFinalized goes on showing blocks until even those held back are
// too many.
func TestIngestStopsWhereNothingIsFinalized(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 1, Retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 40}})
		root := rootBlock(100)
		n.send(root)
		parent := root
		for slot := ledger.Slot(101); slot <= 108; slot++ {
			parent = huge(child(parent, slot, 0), 300<<20)
			n.try(parent)
		}
		if why := n.Status().Unhealthy; !strings.Contains(why, "ingest stopped") {
			t.Errorf("health says %q, want that ingest stopped", why)
		}
		if _, _, err := n.Block(ledger.Query{}, 103); err != nil {
			t.Errorf("reads do not go on: %v", err)
		}
		n.mustStop()
	})
}

// TestReadiness asks before there is anything to answer from, and as it comes.
func TestReadiness(t *testing.T) {
	base := &ledger.BaseState{Slot: 50, Accounts: []ledger.AccountWrite{lamports(key(1), 5)}}
	tests := map[string]struct {
		info   ledger.SourceInfo
		events []ledger.Event
		ends   bool
		want   error // nil: it is ready
		slot   ledger.Slot
	}{
		"nothing came":                               {live(), nil, false, ledger.ErrNoBlock, 0},
		"nothing came of a finite source":            {finite(), nil, false, ledger.ErrNoBlock, 0},
		"base state only":                            {live(), []ledger.Event{base}, false, ledger.ErrRecovering, 0},
		"base state and a block":                     {live(), []ledger.Event{base, rootBlock(100)}, false, nil, 100},
		"a finite source ended with nothing":         {finite(), nil, true, nil, 0},
		"a finite source ended with base state only": {finite(), []ledger.Event{base, &ledger.BaseState{Slot: 20}}, true, nil, 50},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				n := startNode(t, tt.info, Config{Shards: 2})
				n.send(tt.events...)
				if tt.ends {
					n.endInput()
				}
				if s := n.Status(); (s.Unhealthy == "") != (tt.want == nil) || s.NotReady != tt.want {
					t.Errorf("status %+v, want %v", s, tt.want)
				}
				_, v, err := n.Account(ledger.Query{}, key(1))
				if tt.want != nil {
					if err != tt.want || !errors.Is(err, ledger.ErrUnavailable) {
						t.Errorf("an account before the node is ready: %v, want %v", err, tt.want)
					}
				} else if known := len(tt.events) > 0; known != (err == nil) || v.Tip().Slot != tt.slot {
					t.Errorf("an account: %v at slot %d, want slot %d", err, v.Tip().Slot, tt.slot)
				}
				if tt.want == nil && tt.slot != 100 {
					_, _, err := n.LatestBlock(ledger.Query{})
					if why, ok := absence(err); !ok || why.Absence != ledger.NoBlockYet {
						t.Errorf("latest block: %v, want that there is none yet", err)
					}
				}
				n.mustStop()
			})
		})
	}
}

func TestWithoutSourceServesWhatIsHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := New(Config{Shards: 2})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		synctest.Wait()
		if s := e.Status(); s.Unhealthy != "" || s.Peers != 0 {
			t.Errorf("status %+v, want healthy without peers", s)
		}
		_, _, err := e.Account(ledger.Query{}, key(1))
		if why, ok := absence(err); !ok || why.Absence != ledger.AccountNotIndexed {
			t.Errorf("an account: %v, want not indexed", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestFiniteSourceIsNeverStalled(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, finite(), Config{Shards: 1})
		n.send(rootBlock(100))
		n.endInput()
		time.Sleep(time.Hour)
		if why := n.Status().Unhealthy; why != "" {
			t.Errorf("health says %q an hour after the end of input", why)
		}
		n.mustStop()
	})
}

func TestSourceErrorEndsRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, finite(), Config{Shards: 2})
		n.send(rootBlock(100))
		n.source.err = errors.New("line 7 is no JSON")
		n.endInput()
		<-n.ended
		if n.err == nil || !strings.Contains(n.err.Error(), "line 7 is no JSON") || !strings.Contains(n.err.Error(), "test") {
			t.Errorf("Run: %v, want the source's name and error", n.err)
		}
	})
}

// TestBrokenShardEndsRun breaks a shard's goroutine: Run ends with an error that names it,
// whatever waits for it gives up.
func TestBrokenShardEndsRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 3})
		root := rootBlock(100, lamports(key(1), 1), lamports(key(2), 1), lamports(key(3), 1), lamports(key(4), 1))
		n.send(root)
		n.shards[1].ApplyBase(9, &ledger.BaseState{}, true) // below what is held
		n.try(child(root, 101, 0))
		<-n.ended
		if n.err == nil || !strings.Contains(n.err.Error(), "shard 1 broke") {
			t.Errorf("Run: %v, want that shard 1 broke", n.err)
		}
		if _, _, err := n.Accounts(ledger.Query{}, []ledger.Pubkey{key(1), key(2), key(3), key(4)}); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("a query afterwards: %v, want unavailable", err)
		}
	})
}

// TestStopEndsEveryGoroutine stops an engine at rest and at work, and asks it afterwards.
func TestStopEndsEveryGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	e := New(Config{Shards: 4, Source: &flatOut{stream: newWitnessStream(1, 2000)}, Logger: quiet})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for e.Head() == nil || e.Head().Tip(ledger.Processed).Slot < 200 {
		<-e.nextPublication()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, _, err := e.Account(ledger.Query{}, key(1)); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("a query after the end: %v, want unavailable", err)
	}
	goleak.VerifyNone(t, before)
}

// TestMinSlotIsWaitedFor asks for slots that come, come late, and never come.
func TestMinSlotIsWaitedFor(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		defer n.mustStop()
		root := rootBlock(100, lamports(key(1), 100))
		blocks := chainOf(root, 5)
		n.send(root)
		ask := func(q ledger.Query) (ledger.Lamports, time.Duration, error) {
			began := time.Now()
			a, _, err := n.Account(q, key(1))
			return a.Lamports, time.Since(began), err
		}
		if got, _, err := ask(ledger.Query{MinSlot: 100}); err != nil || got != 100 {
			t.Errorf("a slot that is there: %d, %v", got, err)
		}
		if _, took, err := ask(ledger.Query{MinSlot: 101}); !errors.Is(err, ledger.ErrMinSlot) || took != 0 {
			t.Errorf("a slot to come, without wait: %v after %v, want ErrMinSlot at once", err, took)
		}
		if _, took, err := ask(ledger.Query{MinSlot: 101, Wait: time.Second}); !errors.Is(err, ledger.ErrMinSlot) || took != time.Second {
			t.Errorf("a slot that does not come: %v after %v, want ErrMinSlot after 1s", err, took)
		}
		type answer struct {
			lamports ledger.Lamports
			took     time.Duration
			err      error
		}
		answers := make(chan answer, 1)
		for _, q := range []ledger.Query{
			{MinSlot: 103, Wait: 2 * time.Second},
			{MinSlot: 105, Wait: 2 * time.Second, Commitment: ledger.Confirmed},
		} {
			go func() {
				got, took, err := ask(q)
				answers <- answer{got, took, err}
			}()
			time.Sleep(time.Second)
			switch q.MinSlot {
			case 103:
				n.send(blocks[0], blocks[1])
				n.send(blocks[2])
			case 105:
				n.send(blocks[3], blocks[4])
				n.send(status(blocks[4], ledger.StatusConfirmed))
			}
			a := <-answers
			if a.err != nil || a.lamports != ledger.Lamports(q.MinSlot) || a.took != time.Second {
				t.Errorf("slot %d at %s came while waiting: %d, %v after %v", q.MinSlot, q.Commitment, a.lamports, a.err, a.took)
			}
		}
	})
}

// TestAnswersFromOldHeads asks at a head while it is replaced, undone and folded away.
func TestAnswersFromOldHeads(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		defer n.mustStop()
		root := rootBlock(100, lamports(key(1), 100))
		blocks := chainOf(root, 5)
		n.send(root, blocks[0])
		old := n.Head()
		n.send(child(root, 150, 1, lamports(key(1), 1)))
		n.send(status(blocks[0], ledger.StatusFinalized))
		ask := func() (ledger.Lamports, error) {
			a, _, err := n.Account(ledger.Query{Commitment: ledger.Finalized, Head: old}, key(1))
			return a.Lamports, err
		}
		time.Sleep(queryDeadline)
		if got, err := ask(); err != nil || got != 100 {
			t.Errorf("at the old head within a query's time: %d, %v, want 100", got, err)
		}
		time.Sleep(time.Minute)
		n.send(events(blocks[1:]...)...)
		if _, err := ask(); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("at a head folded away: %v, want unavailable", err)
		}
		if a, _, err := n.Account(at(ledger.Finalized), key(1)); err != nil || a.Lamports != 101 {
			t.Errorf("at the newest head: %d, %v, want 101", a.Lamports, err)
		}
	})
}
