package packed

import (
	"sync/atomic"

	"ledgerd/shard/arena"
)

// pin protects the records of one frozen copy from reuse.
type pin struct {
	epoch    uint64
	released atomic.Bool
}

// pins are the epochs of reclamation: the frozen copies that may still be read, and the retired records. A record is
// retired when its account has left it, and reclaimed when no copy can read it.
type pins struct {
	epoch   uint64    // of the newest copy; each copy begins one
	active  []*pin    // oldest first
	retired []retired // oldest first

	// fresh has a bit for each record that says whether it was made after the newest copy. No copy reads
	// such a record, so it may be overwritten. Without fresh the memory that a copy pins would grow with
	// every write and not only with every key written.
	fresh []uint64
}

// retired is a record that its account has left, and the epoch of the newest copy that may read it.
type retired struct {
	epoch uint64
	ref   arena.Ref
}

// add pins all present records.
func (p *pins) add() *pin {
	p.epoch++
	n := &pin{epoch: p.epoch}
	p.active = append(p.active, n)
	clear(p.fresh)
	return n
}

// pinned reports whether a copy may still be read.
func (p *pins) pinned() bool {
	for len(p.active) > 0 && p.active[0].released.Load() {
		p.active[0] = nil
		p.active = p.active[1:]
	}
	return len(p.active) > 0
}

// made marks a new record as fresh.
func (p *pins) made(r arena.Ref) {
	if !p.pinned() {
		return
	}
	for int(r/64) >= len(p.fresh) {
		p.fresh = append(p.fresh, 0)
	}
	p.fresh[r/64] |= 1 << (r % 64)
}

// shared reports whether a copy may read a record.
func (p *pins) shared(r arena.Ref) bool {
	return p.pinned() && (int(r/64) >= len(p.fresh) || p.fresh[r/64]&(1<<(r%64)) == 0)
}

// retire queues a record for reclamation.
func (p *pins) retire(r arena.Ref) { p.retired = append(p.retired, retired{p.epoch, r}) }

// reclaim calls free for at most most retired records that no copy can read any more.
func (p *pins) reclaim(most int, free func(arena.Ref)) {
	pinned := p.pinned()
	for ; most > 0 && len(p.retired) > 0; most-- {
		// A copy may read what was retired after it was taken.
		if pinned && p.retired[0].epoch >= p.active[0].epoch {
			return
		}
		free(p.retired[0].ref)
		p.retired = p.retired[1:]
	}
	if len(p.retired) == 0 {
		p.retired = nil // frees the array
	}
}
