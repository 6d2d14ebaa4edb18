package stream

import (
	"maps"
	"slices"
	"sort"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// retold is a topic as one client is told what it has missed of it.
type retold struct {
	*Topic
	number uint64
	work   *work // of the client
	seen   ledger.Seq
	upTo   ledger.Version // of the head when it was asked for: what came after that is told as it comes
	mints  mints          // of what is told, where those of all the updates are not read
}

// resumeLocked has the writer send an answer, and then what was missed of a topic. Where it has yet to begin with what was missed of others of the
// level, that and this become one: hundreds of topics that come back together read the log once. What they are told as it comes is behind that anyway.
func (s *Socket) resumeLocked(r *retold, newest ledger.Seq, answer []byte) {
	level := r.Level
	missed, waits := s.hub.missedLocked(level, r.seen, newest, r), s.missing[level]
	s.hub.countResume(missed, newest)
	cost := missed.cost()
	if waits != nil && waits.past != nil && missed.past != nil {
		cost -= pastPrice // which is paid
	}
	switch {
	case !s.pay(cost):
	case missed.isEmpty():
		s.Answer(answer)
	case waits != nil:
		all := s.hub.missedLocked(level, min(waits.seen, r.seen), newest, append(waits.told, r)...)
		all.answers = batch{textFrame(waits.answers.data, answer), tally{frames: waits.answers.frames + 1}}
		*waits = *all
	default:
		s.Answer(answer)
		s.missing[level] = missed
		s.outbox.put(nil, &packet{run: func() error { return s.writeMissing(level) }, extra: missed.size()})
	}
}

// writeMissing writes what was missed at a level. What is resumed from here on comes after it.
func (s *Socket) writeMissing(level ledger.Commitment) error {
	s.hub.mu.Lock()
	b := s.missing[level]
	s.missing[level] = nil
	s.hub.mu.Unlock()
	return s.writeMissed(b)
}

// span finds an account by its key, in whose order updates are.
func (r *retold) span(e *emission) (first, end int) {
	if !r.Account.Known {
		return 0, len(e.updates)
	}
	at, found := sort.Find(len(e.updates), func(i int) int { return r.Account.Value.Compare(&e.updates[i].Account.Pubkey) })
	if !found {
		return at, at
	}
	return at, at + 1
}

func (r *retold) looks(e *emission) int {
	if r.Account.Known {
		return 1
	}
	return len(e.updates) + 1
}

func (r *retold) match(e *emission, part int) bool {
	if !e.after(part, r.seen) || e.upTo > r.upTo {
		return false
	}
	u := &e.updates[part]
	var room [maxNamesOf]name
	of := r.name()
	return slices.ContainsFunc(namesOf(room[:0], u), func(n name) bool {
		return n.kind == of.kind && *n.key == *of.key && !n.hasLost(&u.Account)
	}) && (r.Takes == nil || r.Takes(u))
}

// frameBytes may be less where an account is told in an encoding that takes more than base64, which costs a copy.
func (r *retold) frameBytes(e *emission, part int) int {
	return maxFrameBytes + withData.updateFrameBytes(&e.updates[part].Account)
}

// appendPart charges for the data: it is encoded for this client alone.
func (r *retold) appendPart(dst []byte, e *emission, part int) []byte {
	var note Note
	if note.of(e, part); !note.Decimals.Known {
		note.Decimals = r.mints.of(note.Account)
	}
	r.work.charge(time.Duration(note.Account.Data.Len()) * dataPrice)
	return frame.AppendText(dst, func(b []byte) []byte { return r.Append(b, r.number, &note) })
}

// readDecimals reads, for this client, those of what it is told, as far as they are not there for all who are told of the same updates.
func (r *retold) readDecimals(h *Hub, emissions []*emission) (asked int) {
	if !r.Tokens {
		return 0
	}
	clear(r.mints)
	for some := range slices.Chunk(emissions, decimalsBatch) {
		lacking := make(mints)
		for _, e := range some {
			for part, end := r.span(e); part < end && e.decimals.Load() == nil; part++ {
				if r.match(e, part) {
					lacking.add(&e.updates[part].Account)
				}
			}
		}
		maps.DeleteFunc(lacking, func(mint ledger.Pubkey, _ ledger.Opt[uint8]) bool { return r.mints[mint].Known })
		asked += len(lacking)
		_ = h.readMints(h.newest(), lacking) // what cannot be read stays unknown
		maps.Copy(r.mints, lacking)
	}
	return asked
}

func (r *retold) hasHeartbeats() bool { return false }
