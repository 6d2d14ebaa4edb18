package stream

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
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
func framesIn(t *testing.T, data []byte) (count uint64) {
	t.Helper()
	for len(data) > 0 {
		header, n := 2, int(data[1])
		if n == 126 {
			header, n = 4, int(data[2])<<8|int(data[3])
		}
		if data[0] != finBit|byte(frame.Text) || header+n > len(data) {
			t.Fatalf("%d bytes at the end are no frame", len(data))
		}
		data = data[header+n:]
		count++
	}
	return count
}

func TestARingHoldsWholeFrames(t *testing.T) {
	for f, want := range map[form]uint64{basic: 2000, extended: 2001} {
		r := newRing(f, 1<<20, 0)
		c := r.newest()
		e := emissionOf(7, 1, 2000)
		r.append(e)
		var told []byte
		for {
			frames, to, ok := c.next(c.head())
			if !ok {
				t.Fatalf("form %d: lapped at %d of %d", f, c.at, c.head().at)
			}
			if len(frames) == 0 {
				break
			}
			if got := framesIn(t, frames); got != to.frames-c.frames {
				t.Errorf("form %d: %d frames, counted %d", f, got, to.frames-c.frames)
			}
			told = append(told, frames...)
			c.position = to
		}
		var wanted []byte
		for i := range e.updates {
			wanted = e.appendPart(wanted, f, i)
		}
		if f == extended {
			wanted = e.appendPart(wanted, f, e.ending())
		}
		if !bytes.Equal(told, wanted) || c.frames != want || c.seq != 2000 {
			t.Errorf("form %d: %d frames in %d bytes up to seq %d, want %d in %d up to 2000", f, c.frames, len(told), c.seq, want, len(wanted))
		}
	}
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
	var lapped, through sync.Map
	done := make(chan struct{})
	for reader := range 8 {
		c := r.newest()
		reading.Go(func() {
			random := rand.New(rand.NewPCG(uint64(reader), 3))
			for ended := false; ; {
				limit := c.head()
				frames, to, ok := c.next(limit)
				if !ok {
					lapped.Store(reader, true)
					return
				}
				if got := framesIn(t, frames); got != to.frames-c.frames {
					t.Errorf("%d frames, counted %d", got, to.frames-c.frames)
				}
				if c.position = to; len(frames) > 0 {
					if random.IntN(50) >= reader {
						continue
					}
					for range 1000 * reader { // slow
						random.Uint64()
					}
					continue
				}
				if ended {
					through.Store(reader, c.frames)
					return
				}
				select {
				case <-done:
					ended = true
				default:
				}
			}
		})
	}
	for slot := range ledger.Slot(2000) {
		r.append(emissionOf(slot, ledger.Seq(slot)*20+1, 20))
	}
	close(done)
	reading.Wait()
	through.Range(func(reader, frames any) bool {
		if frames != r.end.frames {
			t.Errorf("reader %v read %d frames, want %d", reader, frames, r.end.frames)
		}
		return true
	})
}

// A ring is there as long as somebody's connection who followed it.
func TestRingsGoWithTheirLastFollower(t *testing.T) {
	n := serve(t, nil)
	rings := func() (count int) {
		n.hub.mu.Lock()
		defer n.hub.mu.Unlock()
		for level := range n.hub.levels {
			for _, r := range n.hub.levels[level].rings {
				if r != nil {
					count++
				}
			}
		}
		return count
	}
	if got := rings(); got != 0 {
		t.Fatalf("%d rings with nobody there", got)
	}
	silent := n.dial("?mode=none&extended=true")
	a, b := n.dial(""), n.dial("?commitment=finalized&extended=true")
	b.send(`{"type":"subscribe","id":1,"pubkeys":%s}`, list(key(1)))
	b.settle()
	if got := rings(); got != 2 {
		t.Errorf("%d rings, want 2", got)
	}
	for _, c := range []*client{a, b} {
		c.close("\x03\xe8")
		c.endsWith(1000, "")
	}
	eventually(t, "the rings are gone", func() bool { return rings() == 0 })
	silent.quiet()
}

// Whoever goes between everything and names hears each update once, in order, while blocks come.
func TestTurnsBetweenRingAndNamesAreExact(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1)
	c := n.dial("?extended=true")
	turns := make(chan struct{}, 1) // each lets a few blocks come, whenever they do
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for range turns {
			for range 20 {
				slot := n.script.nextSlot()
				n.script.block(slot, account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programB))
			}
		}
	})
	defer publishing.Wait()
	defer close(turns)
	next := ledger.Seq(1)
	for turn := range 45 { // within the budget of messages
		turns <- struct{}{}
		if turn%2 == 0 { // of the same accounts, by name
			c.send(`{"type":"subscribe","id":1,"programs":%s}`, list(programA, programB))
		} else {
			c.send(`{"type":"subscribe","id":1}`)
		}
		for _, u := range readUpdates(t, c.settle()) {
			if u.Seq != next {
				t.Fatalf("turn %d: seq %d came, want %d", turn, u.Seq, next)
			}
			next++
		}
	}
	if next < 500 {
		t.Errorf("only %d updates came", next-1)
	}
}

// Answers lie exactly where they belong among the frames of the ring: a pong names the seq of
// the frame before it.
func TestAnswersStandAtTheirPlaceInTheRing(t *testing.T) {
	n := serve(t, nil)
	n.script.block(1, account(1, 1, programA))
	c := n.dial("?extended=true&resume_from=0")
	turns := make(chan struct{}, 1)
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for range turns {
			for range 50 {
				slot := n.script.nextSlot()
				n.script.block(slot, account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programB))
			}
		}
	})
	defer publishing.Wait()
	defer close(turns)
	last, between := ledger.Seq(0), 0
	for range 80 {
		turns <- struct{}{}
		c.send(`{"type":"ping"}`)
		for pong := false; !pong; {
			var f struct {
				Type string
				Seq  ledger.Seq
			}
			if err := json.Unmarshal([]byte(c.next()), &f); err != nil {
				t.Fatal(err)
			}
			if pong = f.Type == "pong"; pong && f.Seq != last {
				t.Fatalf("a pong names seq %d after a frame of %d", f.Seq, last)
			}
			if f.Type != "resumed" {
				last = f.Seq
			}
		}
		if last%100 != 1 {
			between++
		}
	}
	t.Logf("%d pongs came while blocks did", between)
}
