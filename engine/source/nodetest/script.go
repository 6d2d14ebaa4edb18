package nodetest

import (
	"math/rand/v2"

	"ledgerd/engine/ledger"
)

// script turns what happens into messages, in an order that a validator might send them in.
type script struct {
	random  *rand.Rand
	version uint64     // the newest write version
	late    []*message // of a block told before: they come within the next one
	plain   bool       // everything in the straightest order
}

// messages returns those of one step.
func (c *script) messages(s *step) []*message {
	var out []*message
	for i := range s.events {
		e := &s.events[i]
		switch e.what {
		case produced:
			out = c.mix(out, c.block(e.block))
		case overturned:
			out = append(out, c.takeLate()...) // nothing of it may come after its end
			out = append(out, c.block(e.block)...)
			out = append(out, c.takeLate()...)
			out = append(out, c.status(e, slotDead))
		case failed:
			out = append(out, c.broken(e)...)
		case confirmed:
			out = append(out, c.takeLate()...)
			out = append(out, c.status(e, slotConfirmed))
		case finalized:
			out = append(out, c.status(e, slotFinalized))
		}
	}
	return out
}

func (c *script) status(e *event, status slotStatus) *message {
	m := &message{kind: slotMessage, slot: e.block.Slot, parent: e.block.ParentSlot, status: status}
	if status == slotDead {
		m.reason = "block failed: invalid transaction"
	}
	return m
}

// mix puts what is late of the block before among the first messages of the next one.
func (c *script) mix(out, next []*message) []*message {
	late := c.takeLate()
	next = c.postpone(next)
	for len(late) > 0 && len(next) > 0 {
		if c.random.IntN(2) == 0 {
			out, late = append(out, late[0]), late[1:]
		} else {
			out, next = append(out, next[0]), next[1:]
		}
	}
	return append(append(out, late...), next...)
}

// postpone sometimes keeps transactions back that come after their block's bank froze. The meta comes before the bank of the next
// block is made: one thread of the validator does both.
func (c *script) postpone(block []*message) []*message {
	if c.plain || c.random.IntN(4) != 0 {
		return block
	}
	frozen := len(block)
	for i, m := range block {
		if m.kind == slotMessage && m.status == slotProcessed {
			frozen = i
		}
	}
	out := block[:frozen:frozen]
	for _, m := range block[frozen:] {
		if m.kind == transactionMessage {
			c.late = append(c.late, m)
		} else {
			out = append(out, m)
		}
	}
	return out
}

func (c *script) takeLate() []*message {
	late := c.late
	c.late = nil
	return late
}

// block tells a block. Account writes come before the status processed, in which the bank freezes; the
// transactions and the block meta come through channels of their own, before or after.
func (c *script) block(b *ledger.Block) []*message {
	status := func(s slotStatus) *message {
		return &message{kind: slotMessage, slot: b.Slot, parent: b.ParentSlot, status: s}
	}
	begun := []*message{status(slotFirstShred), status(slotCreatedBank)}
	writes := c.writes(b)
	rest := make([]*message, 0, len(b.Transactions)+1)
	for i := range b.Transactions {
		rest = append(rest, &message{kind: transactionMessage, slot: b.Slot, tx: &b.Transactions[i], block: b})
	}
	meta := &message{kind: metaMessage, slot: b.Slot, block: b}
	if c.plain {
		out := append(append(begun, writes...), rest...)
		return append(out, status(slotCompleted), meta, status(slotProcessed))
	}
	c.shuffle(rest)
	// The meta is seldom early.
	at := len(rest) - c.random.IntN(len(rest)+1)/4
	rest = append(rest[:at:at], append([]*message{meta}, rest[at:]...)...)
	// What must come in order: the writes, all shreds, and then the end.
	frozen := append(writes, status(slotCompleted), status(slotProcessed))
	out := begun
	for len(frozen) > 0 || len(rest) > 0 {
		if len(rest) == 0 || len(frozen) > 0 && c.random.IntN(len(frozen)+len(rest)) < len(frozen) {
			out, frozen = append(out, frozen[0]), frozen[1:]
		} else {
			out, rest = append(out, rest[0]), rest[1:]
		}
	}
	return out
}

// writes tells the account writes of a block with growing write versions: for some accounts an
// earlier one too, that the last one replaces. Their order is not that of the versions.
func (c *script) writes(b *ledger.Block) []*message {
	out := make([]*message, 0, 2*len(b.Accounts))
	for i := range b.Accounts {
		w := &b.Accounts[i]
		if !c.plain && c.random.IntN(4) == 0 {
			earlier := *w
			earlier.Lamports += 3
			c.version++
			out = append(out, &message{kind: accountMessage, slot: b.Slot, write: &earlier, writeVersion: c.version})
		}
		c.version++
		out = append(out, &message{kind: accountMessage, slot: b.Slot, write: w, writeVersion: c.version})
	}
	if !c.plain {
		c.shuffle(out)
	}
	return out
}

// broken tells a block that breaks half-way.
func (c *script) broken(e *event) []*message {
	whole := c.block(e.block)
	out := make([]*message, 0, len(whole)/2+1)
	for _, m := range whole[:len(whole)/2] {
		if m.kind != metaMessage && !(m.kind == slotMessage && m.status == slotProcessed) {
			out = append(out, m)
		}
	}
	return append(out, c.status(e, slotDead))
}

func (c *script) shuffle(m []*message) {
	c.random.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
}
