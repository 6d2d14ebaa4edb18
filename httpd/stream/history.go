package stream

import (
	"context"
	"errors"

	"ledgerd/engine/ledger"
)

// History is the log behind what the hub keeps in memory. Any goroutine may call it.
type History interface {
	// Oldest returns the oldest seq that Publications can begin after. It does not wait.
	Oldest() ledger.Seq
	// Publications visits publications as they were published, in log order, until the newest
	// or the first error, which it returns. It begins where every block is visited that was not
	// final yet when the update of the given seq was published, and every later one.
	Publications(ctx context.Context, after ledger.Seq, visit func(*ledger.Publication) error) error
}

const (
	// pastBytes is about how much is read from the log at once, to be then written in peace:
	// whoever is slow must not hold up others that read.
	pastBytes = 8 << 20
	// pastReaders is how many may read the log at the same time.
	pastReaders = 1
	// pastTokens is what reading the log costs a client.
	pastTokens = budgetBurst / 4
)

// past is the part of a backlog that only the log holds.
type past struct {
	level ledger.Commitment
	head  ledger.Version // of the newest publication that belongs to it
	until ledger.Version // where the emissions kept in memory begin
	told  ledger.Version // the emission told last

	whole bool // all of it was read
}

// pastLocked returns what lies between a seq and the emissions kept; nil if that is nothing,
// or nobody has it.
func (h *Hub) pastLocked(level ledger.Commitment, after, newest ledger.Seq) *past {
	if h.config.History == nil || after < h.config.History.Oldest() || !h.recent[level].lacks(after, newest) {
		return nil
	}
	p := &past{level: level, head: h.head.Tip(ledger.Processed).Version}
	p.until = p.head + 1
	if kept := h.recent[level].emissions; len(kept) > 0 {
		p.until = kept[0].version
	}
	return p
}

// oldestLocked returns the oldest seq that a client can go on from.
func (h *Hub) oldestLocked(level ledger.Commitment, newest ledger.Seq) ledger.Seq {
	oldest := h.recent[level].oldest(newest)
	if h.config.History != nil {
		oldest = min(oldest, h.config.History.Oldest())
	}
	return oldest
}

var (
	errEnough = errors.New("enough was read")
	errHole   = errors.New("the log ends before what is kept in memory begins")
)

// read returns the next emissions that hold frames after a seq; none to a subscriber that began
// to end while it waited for its turn.
func (p *past) read(s *subscriber, seen ledger.Seq) (out []*emission, err error) {
	h := s.hub
	h.pasts <- struct{}{}
	defer func() { <-h.pasts }()
	if s.outbox.isClosing() {
		return nil, nil
	}
	var f feed
	size := 0
	err = h.config.History.Publications(context.Background(), seen, func(publication *ledger.Publication) error {
		if publication.Head.Tip(ledger.Processed).Version > p.head {
			p.whole = true
			return errEnough
		}
		for _, e := range f.take(publication) {
			if e.level != p.level || e.version <= p.told || e.lastSeq < seen {
				continue
			}
			if e.version >= p.until {
				p.whole = true
				return errEnough
			}
			out = append(out, e)
			p.told = e.version
			size += e.size()
		}
		if size >= h.pastBytes {
			return errEnough
		}
		p.whole = p.whole || publication.Head.Tip(ledger.Processed).Version == p.head
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return nil, err
	case size < h.pastBytes && !p.whole:
		return nil, errHole
	}
	return out, nil
}

// writePast writes what a subscriber missed before the emissions kept; not done is who was
// lapped meanwhile. A connection that is to end does so without the rest.
func (s *subscriber) writePast(b *backlog) (done bool, err error) {
	seen := b.seen
	for b.past != nil && !b.past.whole {
		emissions, err := b.past.read(s, seen)
		if err != nil {
			s.hub.config.Logger.Error("cannot read the log for a subscriber", "after", uint64(seen), "error", err)
			s.outbox.close(endInternal)
			return false, &endInternal
		}
		if len(emissions) > 0 {
			seen = emissions[len(emissions)-1].lastSeq
		}
		if done, err := s.writeEmissions(&backlog{emissions: emissions, seen: b.seen, wants: b.wants}); !done || err != nil {
			return false, err
		}
		if ending := s.outbox.endingSoon(); ending != nil {
			return false, ending
		}
	}
	return true, nil
}
