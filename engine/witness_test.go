package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/sequencer"
)

// witnessReader asks one engine, as one connection does, and holds each answer against the model at the version it says it is from.
type witnessReader struct {
	*comparer
	e      *Engine
	newest *ledger.Head
}

// shown returns what a head shows, and checks that heads never go back.
func (r *witnessReader) shown(h *ledger.Head, level ledger.Commitment) (shown, error) {
	p, ok := r.m.points[h.Tip(ledger.Processed).Version]
	if !ok || h.Tips != p.tips {
		return shown{}, fmt.Errorf("a head at %+v, want %+v", h.Tips, p.tips)
	}
	old, final := r.newest, ledger.Finalized
	if old != nil && (h.Tips[0].Version < old.Tips[0].Version || h.Tips[final].Slot < old.Tips[final].Slot) {
		return shown{}, fmt.Errorf("stands at %+v after %+v", h.Tips, old.Tips)
	}
	r.newest = h
	return r.shownOf(p, h, level), nil
}

// ask asks for accounts at whatever head is the newest.
func (r *witnessReader) ask() error {
	q := at(levels[r.r.IntN(3)])
	all, v, err := r.e.Accounts(q, r.keys)
	if err != nil {
		return err
	}
	s, err := r.shown(v.Head, q.Commitment)
	for i, k := range r.keys {
		if got := seeAccount(&all[i]); err == nil && got != s.world.see(k) {
			err = fmt.Errorf("%s, slot %d: got %v, want %v", q.Commitment, v.Tip().Slot, got, s.world.see(k))
		}
	}
	return err
}

// askAt asks one question of a head, which others may replace meanwhile.
func (r *witnessReader) askAt(h *ledger.Head) error {
	level, questions := levels[r.r.IntN(3)], r.questions()
	s := r.shownOf(r.m.points[h.Tip(ledger.Processed).Version], h, level)
	if err := questions[r.r.IntN(len(questions))](r.e, ledger.Query{Commitment: level, Head: h}, s); err != nil {
		return fmt.Errorf("%s, at a head of slot %d: %w", level, h.Tip(level).Slot, err)
	}
	return nil
}

// turn asks once. Where the source pauses, so that versions are folded all the time, it also asks at heads that are almost too
// old to be asked at.
func (r *witnessReader) turn(pause time.Duration) error {
	head := r.e.Head()
	err := errors.Join(r.askAt(head), r.ask())
	if pause == 0 {
		runtime.Gosched()
		return err
	}
	time.Sleep(time.Duration(r.r.IntN(int(pause))))
	if r.r.IntN(20) == 0 {
		time.Sleep(time.Duration(r.r.IntN(int(queryDeadline))))
		err = errors.Join(err, r.askAt(head))
	}
	return err
}

// TestNoAnswerMixesTwoBlocks shows a stream with forks, flat out or with a pause after each event, while readers take turns to
// ask everything at every level, at least one for each event.
func TestNoAnswerMixesTwoBlocks(t *testing.T) {
	for round := range sample(40, 2, 2) {
		pause := time.Duration(round%2) * 20 * time.Millisecond
		bubbletest.Test(t, func(t *testing.T) { // so that no pause of the machine makes an answer late
			s := streams()[0]
			events, m := s.randomEvents(seeded(t, uint64(round+1)).Uint64(), sample(500, 500, 200))
			retention := sequencer.Retention{Slots: 100_000, Bytes: 1 << 30}
			n := startNode(t, live(), bound(t, Config{Shards: 4, Retention: retention}, nil, s.dataPrograms()))
			const first = 50 // among them is the root
			n.send(events[:first]...)
			var stopped atomic.Bool
			var working sync.WaitGroup
			var turns atomic.Int64
			for i := range uint64(6) {
				r := &witnessReader{comparer: newComparer(t, rand.New(rand.NewPCG(i, 3)), m, retention), e: n.Engine}
				working.Go(func() {
					for !stopped.Load() {
						if err := r.turn(pause); err != nil && !stopped.Swap(true) {
							t.Error(err)
						}
						turns.Add(1)
					}
				})
			}
			wait := func(done func() bool) {
				for time.Sleep(pause); !done() && !stopped.Load(); time.Sleep(pause) {
					runtime.Gosched()
				}
			}
			for i, e := range events[first:] {
				n.source.feed <- e
				wait(func() bool { return turns.Load() > int64(i) })
			}
			wait(func() bool { return n.Head().Tip(ledger.Processed).Version == m.version() })
			stopped.Store(true)
			working.Wait()
			t.Logf("%d records, %d turns", m.version(), turns.Load())
		})
	}
}
