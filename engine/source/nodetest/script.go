package nodetest

import (
	"math/rand/v2"
	"slices"

	"ledgerd/engine/ledger"
)

// script turns what happens into messages, in an order that a validator might send them in.
type script struct {
	random  *rand.Rand
	version uint64     // the newest write version
	late    []*message // of a block told before: they come within the next one
}

// messages returns those of one step.
func (c *script) messages(events []event) (out []*message) {
	for _, e := range events {
		b := e.block
		switch e.what {
		case produced:
			// What is late of the block before comes among the first messages.
			whole, late := c.block(b), c.takeLate()
			out = append(out, interleave(late, c.postpone(whole), func(int, int) bool { return c.random.IntN(2) == 0 })...)
		case overturned: // nothing of it may come after its end
			out = slices.Concat(out, c.takeLate(), c.block(b), []*message{statusOf(b, slotDead)})
		case failed:
			out = append(out, c.broken(b)...)
		case confirmed:
			out = append(append(out, c.takeLate()...), statusOf(b, slotConfirmed))
		case finalized:
			out = append(out, statusOf(b, slotFinalized))
		}
	}
	return out
}

func statusOf(b *ledger.Block, s slotStatus) *message {
	return &message{kind: slotMessage, block: b, status: s}
}

// interleave returns two lists in one, each in its order; next says from how many are left of each whether the first is next.
func interleave(x, y []*message, next func(x, y int) bool) (out []*message) {
	for len(x) > 0 && len(y) > 0 {
		from := &y
		if next(len(x), len(y)) {
			from = &x
		}
		out, *from = append(out, (*from)[0]), (*from)[1:]
	}
	return append(append(out, x...), y...)
}

// postpone sometimes keeps transactions back that come after their block's bank froze. The meta comes before the bank of the next
// block is made: one thread of the validator does both.
func (c *script) postpone(block []*message) (out []*message) {
	if c.random.IntN(4) != 0 {
		return block
	}
	frozen := false
	for _, m := range block {
		frozen = frozen || m.isFrozen()
		if frozen && m.kind == transactionMessage {
			c.late = append(c.late, m)
		} else {
			out = append(out, m)
		}
	}
	return out
}

func (m *message) isFrozen() bool { return m.kind == slotMessage && m.status == slotProcessed }

func (c *script) takeLate() []*message {
	late := c.late
	c.late = nil
	return late
}

// block tells a block. Account writes come before the status processed, in which the bank freezes; the
// transactions and the block meta come through channels of their own, before or after.
func (c *script) block(b *ledger.Block) []*message {
	// What must come in order: the writes, all shreds, and then the end.
	frozen := append(c.writes(b), statusOf(b, slotCompleted), statusOf(b, slotProcessed))
	var rest []*message
	for i := range b.Transactions {
		rest = append(rest, &message{kind: transactionMessage, block: b, tx: &b.Transactions[i]})
	}
	c.shuffle(rest)
	// The meta is seldom early.
	rest = slices.Insert(rest, len(rest)-c.random.IntN(len(rest)+1)/4, &message{kind: metaMessage, block: b})
	told := interleave(frozen, rest, func(x, y int) bool { return c.random.IntN(x+y) < x })
	return append([]*message{statusOf(b, slotFirstShred), statusOf(b, slotCreatedBank)}, told...)
}

// writes tells the account writes of a block with growing write versions: for some accounts an
// earlier one too, that the last one replaces. Their order is not that of the versions.
func (c *script) writes(b *ledger.Block) (out []*message) {
	write := func(w *ledger.AccountWrite) {
		c.version++
		out = append(out, &message{kind: accountMessage, block: b, write: w, writeVersion: c.version})
	}
	for i := range b.Accounts {
		if c.random.IntN(4) == 0 {
			earlier := b.Accounts[i]
			earlier.Lamports += 3
			write(&earlier)
		}
		write(&b.Accounts[i])
	}
	c.shuffle(out)
	return out
}

// broken tells a block that breaks half-way.
func (c *script) broken(b *ledger.Block) []*message {
	whole := c.block(b)
	part := slices.DeleteFunc(whole[:len(whole)/2], func(m *message) bool { return m.kind == metaMessage || m.isFrozen() })
	return append(part, statusOf(b, slotDead))
}

func (c *script) shuffle(m []*message) {
	c.random.Shuffle(len(m), func(i, j int) { m[i], m[j] = m[j], m[i] })
}
