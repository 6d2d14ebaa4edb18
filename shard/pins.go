package shard

import "sync/atomic"

// pin keeps every record that a frozen copy may read.
type pin struct {
	number   uint64
	released atomic.Bool // by whoever held the copy
}

// pins are the frozen copies that may still be read, and the records that are kept for them.
type pins struct {
	number uint64    // of the newest
	active []*pin    // oldest first
	limbo  []remnant // oldest first
}

// remnant is a record that no longer is an account's, and the newest copy that may read it.
type remnant struct {
	number uint64
	ref    ref
}

// add pins what there is now.
func (p *pins) add() *pin {
	p.number++
	n := &pin{number: p.number}
	p.active = append(p.active, n)
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

// keep keeps a record for the copies there are; there must be one.
func (p *pins) keep(r ref) { p.limbo = append(p.limbo, remnant{p.number, r}) }

// drain calls free for at most so many records that no copy can read any more.
func (p *pins) drain(most int, free func(ref)) {
	if len(p.limbo) == 0 {
		return
	}
	pinned := p.pinned()
	for range most {
		if len(p.limbo) == 0 {
			p.limbo = nil // its array was as long as it ever got
			return
		}
		// A record that was given up after the oldest copy was taken may be in it.
		if pinned && p.limbo[0].number >= p.active[0].number {
			return
		}
		free(p.limbo[0].ref)
		p.limbo = p.limbo[1:]
	}
}
