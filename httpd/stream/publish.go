package stream

import "ledgerd/engine/ledger"

// published is a publication as the hub delivers it.
type published struct {
	*ledger.Publication
	emissions []*emission
	bytes     int // about what they take
}

// mostPending is about how much may wait for the goroutine that delivers while a subscriber wants tokens: many seconds of a public
// ledger, for times when the shards are busy. A source that is faster than that goroutine waits.
const mostPending = 8 << 20

// Publish delivers a publication to all connections. It is called in log order, from one
// goroutine, and waits for no socket, nor for the ledger: while a subscriber wants tokens, whose decimals the ledger is asked for,
// another goroutine delivers.
func (h *Hub) Publish(p *ledger.Publication) {
	one := published{Publication: p, emissions: h.feed.take(p)}
	for _, e := range one.emissions {
		e.published = h.now()
		one.bytes += e.size()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.pendingBytes > mostPending {
		h.hasRoom.Wait()
	}
	switch {
	case h.delivering:
		h.pending = append(h.pending, one)
		h.pendingBytes += one.bytes
	case len(h.tokens) > 0 && !h.closed.Load():
		h.pending, h.pendingBytes, h.delivering = append(h.pending, one), one.bytes, true
		h.awaited.Go(h.deliverPending)
	default:
		h.deliverLocked(one)
	}
}

// deliverPending delivers the pending publications after reading the mints that they need.
func (h *Hub) deliverPending() {
	for {
		h.mu.Lock()
		some := h.pending
		h.pending, h.delivering = nil, len(some) > 0
		h.mu.Unlock()
		if len(some) == 0 {
			return
		}
		var emissions []*emission
		for _, one := range some {
			emissions = append(emissions, one.emissions...)
		}
		h.readDecimals(some[len(some)-1].Head, emissions)
		h.mu.Lock()
		for _, one := range some {
			h.deliverLocked(one)
			h.pendingBytes -= one.bytes
		}
		h.hasRoom.Signal()
		h.mu.Unlock()
	}
}

func (h *Hub) deliverLocked(p published) {
	h.head = p.Head
	h.beginLocked(p.Publication)
	for _, e := range p.emissions {
		h.recentBytes += h.recent[e.level].keep(e)
		h.levels[e.level].deliver(e)
		h.levels[e.level].topics.deliver(e, p.Head.Tip(ledger.Finalized).Slot)
		e.block = nil // what is kept for resumes keeps no block in memory
		h.delivered[e.level] = max(h.delivered[e.level], e.lastSeq)
	}
	for i := range h.levels {
		h.levels[i].wake()
	}
}

// beginLocked notes where the first block or rollback begins: from there on everything is
// kept, also at levels that reach it later.
func (h *Hub) beginLocked(p *ledger.Publication) {
	for _, r := range p.Records {
		for i := range h.recent {
			if r.Kind == ledger.BlockRecord || r.Kind == ledger.RollbackRecord {
				h.recent[i].begin(r.FirstSeq)
			}
		}
	}
}
