package packed

import (
	"ledgerd/shard/arena"
	"sync/atomic"
)

// pin keeps every record that a frozen copy may read.
type pin struct {
	number   uint64
	released atomic.Bool // by whoever held the copy
}

// pins are the frozen copies that may still be read, and the records that are kept for them. A record is
// retired when its account does not have it any more, and reclaimed once no copy can read it.
type pins struct {
	number  uint64    // of the newest
	active  []*pin    // oldest first
	retired []retired // oldest first

	// fresh has a bit for each record: it was made after the newest copy was taken, so no copy reads it
	// and it is written in place. Without it the memory of a copy would grow with the writes and not
	// with the keys.
	fresh []uint64
}

// retired is a record that no longer is an account's, and the newest copy that may read it.
type retired struct {
	number uint64
	ref    arena.Ref
}

// add pins what there is now.
func (p *pins) add() *pin {
	p.number++
	n := &pin{number: p.number}
	p.active = append(p.active, n)
	clear(p.fresh)
	return n
}

// pinned reports whether there is a copy that may still be read.
func (p *pins) pinned() bool {
	for len(p.active) > 0 && p.active[0].released.Load() {
		p.active[0] = nil
		p.active = p.active[1:]
	}
	return len(p.active) > 0
}

// made notes that a record was made.
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

// retire keeps a record for the copies that share it.
func (p *pins) retire(r arena.Ref) { p.retired = append(p.retired, retired{p.number, r}) }

// reclaim calls free for at most so many retired records that no copy can read any more.
func (p *pins) reclaim(most int, free func(arena.Ref)) {
	if len(p.retired) == 0 {
		return
	}
	pinned := p.pinned()
	for range most {
		if len(p.retired) == 0 {
			p.retired = nil // its array was as long as it ever got
			return
		}
		// A copy may read what was retired after it was taken.
		if pinned && p.retired[0].number >= p.active[0].number {
			return
		}
		free(p.retired[0].ref)
		p.retired = p.retired[1:]
	}
}
