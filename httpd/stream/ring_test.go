package stream

import (
	"runtime"
	"sync"
	"testing"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
)

// emissionOf returns a block of so many updates.
func emissionOf(slot ledger.Slot, firstSeq ledger.Seq, updates int) *emission {
	e := &emission{slot: slot, time: at(slot), firstSeq: firstSeq, lastSeq: firstSeq + ledger.Seq(updates) - 1}
	for n := range updates {
		e.updates = append(e.updates, ledger.Update{Account: account(n, ledger.Lamports(slot), programA)})
	}
	return e
}

// framesIn counts frames, and fails if the last is not whole.
func framesIn(t *testing.T, data []byte) (count int) {
	t.Helper()
	for len(data) > 0 {
		header, n := 2, int(data[1])
		if n == 126 {
			header, n = 4, int(data[2])<<8|int(data[3])
		}
		if data[0] != finBit|byte(websocket.TextMessage) || header+n > len(data) {
			t.Fatalf("%d bytes at the end are no frame", len(data))
		}
		data = data[header+n:]
		count++
	}
	return count
}

func TestARingHoldsWhatItPromises(t *testing.T) {
	const promised = 1 << 20
	r := newRing(basic, promised, 0)
	oldest, told := r.newest(), 0
	for slot := ledger.Slot(1); ; slot++ {
		before, e := r.end, emissionOf(slot, 1, 50)
		r.append(e)
		// Seen from a reader that stands at the end of its block.
		if c := *oldest; c.lapped() {
			break
		}
		if before.number() > 0 {
			for i := range e.updates {
				told += len(e.appendPart(nil, basic, i))
			}
		}
	}
	if told < promised {
		t.Errorf("a reader was lapped after %d bytes, want at least %d", told, promised)
	}
	if _, _, ok := oldest.next(oldest.head()); ok {
		oldest.position = oldest.block.end
	}
	if frames, _, ok := oldest.next(oldest.head()); ok {
		t.Errorf("who was lapped got %d bytes", len(frames))
	}
}

// Readers at all speeds get the same bytes, or none from where they were lapped.
func TestReadersOfARingSeeNoTornFrames(t *testing.T) {
	r := newRing(extended, 128<<10, 0)
	var reading sync.WaitGroup
	done := make(chan struct{})
	for reader := range 8 {
		c := r.newest()
		reading.Go(func() {
			for ended := false; ; {
				select {
				case <-done:
					ended = true
				default:
				}
				frames, to, ok := c.next(c.head())
				if !ok {
					return // lapped
				}
				if got := framesIn(t, frames); got != to.frames-c.frames {
					t.Errorf("%d frames, counted %d", got, to.frames-c.frames)
				}
				c.position = to
				if ended && len(frames) == 0 {
					if c.frames != r.end.frames {
						t.Errorf("reader %d read %d frames, want %d", reader, c.frames, r.end.frames)
					}
					return
				}
				for range 10 * reader { // each is slower than the one before
					runtime.Gosched()
				}
			}
		})
	}
	for slot := range ledger.Slot(2000) {
		r.append(emissionOf(slot, ledger.Seq(slot)*20+1, 20))
	}
	close(done)
	reading.Wait()
}

// inTurns returns a function that lets some blocks of two accounts come, beside the test. It waits
// until those of the call before the last have come.
func (n *node) inTurns(blocks int) (turn func()) {
	turns := make(chan struct{}, 1)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for range turns {
			for range blocks {
				slot := n.script.nextSlot()
				n.script.block(slot, account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programB))
			}
		}
	})
	n.Cleanup(func() {
		close(turns)
		publishing.Wait()
	})
	return func() { turns <- struct{}{} }
}

// Whoever goes between everything and names hears each update once, in order, while blocks come. And
// answers stand where they belong among the frames: they name the seq of the one before.
func TestTurnsBetweenRingAndNamesAreExact(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	c := n.dial("?extended=true")
	turn := n.inTurns(50)
	next, last := ledger.Seq(1), ledger.Seq(0)
	for round := range 45 { // within the budget of messages
		turn()
		if round%2 == 0 { // of the same accounts, by name
			c.send(`{"type":"subscribe","id":1,"programs":%s}`, list(programA, programB))
		} else {
			c.send(`{"type":"subscribe","id":1}`)
		}
		c.send(`{"type":"ping"}`)
		for kind := ""; kind != "pong"; {
			f := parse(t, c.next())
			switch f.Type {
			case "account_update":
				if f.Seq != next {
					t.Fatalf("round %d: seq %d came, want %d", round, f.Seq, next)
				}
				next++
			case "subscribed", "pong":
				if f.Seq != last {
					t.Fatalf("round %d: %s names seq %d after a frame of %d", round, f.Type, f.Seq, last)
				}
			}
			kind, last = f.Type, f.Seq
		}
	}
	if next < 1000 {
		t.Errorf("only %d updates came", next-1)
	}
}
