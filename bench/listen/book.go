package listen

// book is what one subscriber has received by the numbers of extended frames, through all its connections. It is not safe
// for concurrent use.
type book struct {
	whole  bool // everything at the processed level: numbers come without holes
	all    bool // everything: the numbers of a slot come without holes
	shares bool // a level where restored accounts may share a number

	seq       uint64 // the newest of any frame, 0: none
	restoring bool   // since a rollback or a resume, until the next number
	behind    bool   // a resume is not answered yet: all that comes will come again

	gap uint64 // numbers up to this one are conflated

	slot  uint64  // of the updates that come now, 0: its end was received
	first uint64  // the first number of it
	got   int     // updates of it
	ended slotEnd // the newest; zero: updates of the slots since are not known to have come whole

	updates, missing, twice  int64
	conflated                int64
	resumed, resyncs, passed int64 // answers to a resume of either kind, and the numbers that the second passed over
}

// update counts an account update.
func (b *book) update(slot, seq uint64) {
	if b.behind {
		return
	}
	b.updates++
	switch {
	case seq > b.seq:
		b.reach(seq - 1)
		b.seq, b.restoring = seq, false
	case seq == b.seq && b.restoring && b.shares:
	default:
		b.twice++
		return
	}
	if slot != b.slot {
		b.slot, b.first, b.got = slot, seq, 0
	}
	b.got++
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
		b.restoring = true
	case "gap":
		b.gap, b.ended = m.ToSeq, slotEnd{}
	case "resumed":
		b.reach(m.FromSeq)
		b.resumed++
		b.restoring, b.behind = true, false
	case "resync_required":
		b.resyncs++
		if m.NewestSeq > b.seq {
			b.passed += int64(m.NewestSeq - b.seq)
		}
		b.seq, b.ended, b.behind = m.NewestSeq, slotEnd{}, false
	}
}

// end counts the end of a slot; again says that it was told before. It returns the end before, and how many updates of the slot
// were received and how many there were at least: both 0 if its numbers tell more, or it may have begun before the subscriber came.
func (b *book) end(e slotEnd) (after slotEnd, got, least int, again bool) {
	if b.behind {
		return after, 0, 0, true
	}
	b.reach(e.seq)
	if e.compare(b.ended) <= 0 {
		return after, 0, 0, true
	}
	if !b.whole && b.ended != (slotEnd{}) && b.slot == e.slot && b.first > b.gap {
		if got, least = b.got, b.got; b.all {
			least = int(e.seq - b.first + 1)
		}
	}
	after, b.ended, b.slot = b.ended, e, 0
	return after, got, least, false
}
