package stream

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
)

// heard is what a subscriber knows after all frames it was told.
type heard struct {
	state state
	seq   ledger.Seq
	slot  ledger.Slot // of the last slot_end or rollback
}

// fold takes frames in. Those of a subscriber that is not extended have no seq and no owner.
func (h *heard) fold(t testing.TB, frames []string) {
	t.Helper()
	for _, text := range frames {
		f := parse(t, text)
		if f.Seq < h.seq && f.Slot > 0 {
			t.Fatalf("seq falls from %d: %s", h.seq, text)
		}
		h.seq = max(h.seq, f.Seq)
		switch f.Type {
		case "account_update":
			k := mustKey(t, f.Pubkey)
			if f.Lamports == 0 {
				delete(h.state, k)
				continue
			}
			a := ledger.Account{Pubkey: k, Lamports: f.Lamports}
			if f.Owner != "" {
				a.Owner, a.Known = mustKey(t, f.Owner), ledger.FieldsShown
			}
			h.state[k] = a
		case "slot_end":
			h.slot = f.Slot
		case "rollback":
			h.slot = f.ToSlot
		}
	}
}

// check fails unless what is known is the ledger at a block.
func (h *heard) check(t testing.TB, at point) {
	t.Helper()
	want := maps.Clone(at.state)
	for k, a := range want {
		a.Token = nil // of which frames tell a part
		want[k] = a
	}
	if !maps.Equal(h.state, want) || h.slot != at.tip.Slot && h.slot != 0 {
		t.Fatalf("folded to slot %d and\n %v\nwant %d and\n %v", h.slot, h.state, at.tip.Slot, want)
	}
}

// step stages one random thing: a block, a rollback, or a status.
func (s *script) step(r *rand.Rand) {
	switch dice := r.IntN(10); {
	case len(s.chain) > 0 && dice == 0:
		if low := s.levels[ledger.Finalized]; low < len(s.chain)-1 {
			s.rollBack(s.chain[low+r.IntN(len(s.chain)-1-low)].tip.Slot)
		}
	case len(s.chain) > 0 && dice < 4:
		level := ledger.Confirmed + ledger.Commitment(r.IntN(8)/7)
		low := s.levels[level]
		s.reach(level, s.chain[low+r.IntN(len(s.chain)-low)].tip.Slot)
	default:
		var writes []ledger.Account
		for _, k := range r.Perm(8)[:r.IntN(5)] {
			owner := []ledger.Pubkey{ledger.SystemProgram, programA, programB}[r.IntN(3)]
			a := account(k, ledger.Lamports(r.IntN(4)), owner)
			if s.bare && r.IntN(8) == 0 {
				a = ledger.Account{Pubkey: a.Pubkey, Lamports: a.Lamports}
			}
			if was, ok := s.state[a.Pubkey]; a != was && (ok || a.Exists()) {
				writes = append(writes, a)
			}
		}
		s.slots++
		s.append(s.slots, writes...)
	}
}

// framesOf is what a processed subscriber of everything is told of a record.
func framesOf(r *ledger.Record) (frames []string) {
	if r.Kind == ledger.RollbackRecord {
		frames = append(frames, fmt.Sprintf(`{"type":"rollback","from_slot":%d,"to_slot":%d,"seq":%d}`, r.FromSlot, r.Slot, r.FirstSeq-1))
	}
	for i, u := range r.Updates {
		frames = append(frames, extendedFrame(u.Account, r.Slot, r.FirstSeq+ledger.Seq(i), "processed"))
	}
	if r.Kind == ledger.BlockRecord {
		frames = append(frames, slotEnd(r.Slot, r.LastSeq()))
	}
	return frames
}

// Whoever goes between everything and names, with and without a snapshot, and resumes from some updates ago, hears each update once, in order, while blocks come. And
// answers stand where they belong among the frames: they name the seq of the one before.
func TestTurnsBetweenRingAndNamesAreExact(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		n.script.block(1)
		c := n.dial("?extended=true")
		turns := make(chan struct{}, 1) // so that those of the one before the last have come when one begins
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
		next, last := ledger.Seq(1), ledger.Seq(0)
		for round := range 45 { // within the budget of messages
			turns <- struct{}{}
			switch round % 3 {
			case 0: // the same accounts, by name
				c.send(`{"type":"subscribe","id":1,"programs":%s}`, list(programA, programB))
			case 1:
				c.send(`{"type":"subscribe","id":1,"snapshot":true}`) // of nothing: what comes until it ends is held back
			case 2:
				c.send(`{"type":"resume","id":1,"from_seq":%d}`, max(next, 80)-80)
			}
			c.send(`{"type":"ping"}`)
			for kind := ""; kind != "pong"; {
				f := parse(n, c.next())
				switch f.Type {
				case "account_update":
					if f.Seq != next {
						n.Fatalf("round %d: seq %d came, want %d", round, f.Seq, next)
					}
					next++
				case "resumed":
					next = f.From + 1
				case "subscribed", "pong":
					if f.Seq != last {
						n.Fatalf("round %d: %s names seq %d after a frame of %d", round, f.Type, f.Seq, last)
					}
				}
				kind, last = f.Type, f.Seq
			}
		}
		if next < 1000 {
			n.Errorf("only %d updates came", next-1)
		}
	})
}

// Frames of any length lie in one block each, a ring of long ones holds no more than its bytes and one frame, and a reader reads them whole or knows
// that it was lapped.
func TestARingOfLongFramesIsBounded(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	const limit, longest = 8 * blockBytes, 4 * blockBytes
	r := newRing(withData, limit, 0)
	reader, laps, longFrames := r.newest(), 0, 0
	var want, got []byte
	for slot := range ledger.Slot(300) {
		e := &emission{slot: slot, undoneFrom: ledger.Some(slot)}
		for range random.IntN(4) {
			data := make([]byte, random.IntN(200))
			if random.IntN(3) == 0 {
				data = make([]byte, random.IntN(longest/2))
				longFrames++
			}
			e.updates = append(e.updates, ledger.Update{Account: ledger.Account{Pubkey: key(int(slot)), Known: ledger.FieldData, Data: ledger.NewData(data)}})
		}
		r.append(e)
		for part := opening; part <= e.ending(); part++ {
			want = e.appendPart(want, withData, part)
		}
		held := 0
		for i := range r.slots {
			if b := r.slots[i].Load(); b != nil {
				held += len(b.data)
			}
		}
		if held != r.bytes || held > len(r.slots)*blockBytes+longest {
			t.Fatalf("seed %d: the blocks have %d bytes, counted as %d, of a ring of %d", seed, held, r.bytes, limit)
		}
		if random.IntN(5) > 0 {
			continue
		}
		for head := reader.head(); reader.at < head.at; {
			frames, to, ok := reader.next(head)
			if ok == reader.lapped() && !ok {
				t.Fatalf("seed %d: a reader that was lapped: %v", seed, reader.lapped())
			}
			if got, reader.position = append(got, frames...), to; !ok {
				reader, want, got = r.newest(), nil, nil
				laps++
				break
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: %d bytes were read at slot %d, want %d, and the same", seed, len(got), slot, len(want))
		}
		want, got = nil, nil
	}
	if laps == 0 || longFrames < 50 {
		t.Errorf("seed %d: %d laps and %d long frames show nothing", seed, laps, longFrames)
	}
}
