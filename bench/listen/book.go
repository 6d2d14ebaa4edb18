package listen

// book is what one subscriber has received by the numbers of extended frames, through all its connections. It is not safe
// for concurrent use.
type book struct {
	whole bool // everything at the processed level: numbers come without holes, each once

	seq    uint64  // the newest of any frame, 0: none
	gap    uint64  // numbers up to this one are conflated
	ended  slotEnd // the newest
	behind bool    // a resume is not answered yet: all that comes will come again

	updates, missing, twice  int64
	conflated                int64
	resumed, resyncs, passed int64 // answers to a resume of either kind, and the numbers that the second passed over
}

// update counts an account update.
func (b *book) update(seq uint64) {
	if b.behind {
		return
	}
	b.updates++
	switch {
	case seq > b.seq:
		b.reach(seq - 1)
		b.seq = seq
	case b.whole:
		b.twice++
	}
}

// reach counts what is missing up to a seq.
func (b *book) reach(seq uint64) {
	if seq <= b.seq {
		return
	}
	if b.whole && b.seq != 0 {
		conflated := int64(min(seq, max(b.gap, b.seq)) - b.seq)
		b.conflated += conflated
		b.missing += int64(seq-b.seq) - conflated
	}
	b.seq = seq
}

// take counts a frame that is no update.
func (b *book) take(m *message) {
	switch m.Type {
	case "heartbeat":
		if !b.behind {
			b.reach(m.Seq)
		}
	case "rollback":
		b.reach(m.Seq)
	case "gap":
		b.gap = m.ToSeq
	case "resumed":
		b.reach(m.FromSeq)
		b.resumed++
		b.behind = false
	case "resync_required":
		b.resyncs++
		if m.NewestSeq > b.seq {
			b.passed += int64(m.NewestSeq - b.seq)
		}
		b.seq, b.ended, b.behind = m.NewestSeq, slotEnd{}, false
	}
}

// end counts the end of a slot; again says that it was told before.
func (b *book) end(e slotEnd) (again bool) {
	if b.behind {
		return true
	}
	b.reach(e.seq)
	if e.compare(b.ended) <= 0 {
		return true
	}
	b.ended = e
	return false
}
