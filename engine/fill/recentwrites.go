package fill

import "ledgerd/engine/ledger"

const (
	// maxRecentKeys and maxRecentBlocks bound the recent writes, at some 64 bytes a key. They cover the unfinalized blocks
	// of a busy ledger, and some more for requests in flight: an answer from before them is requested again.
	maxRecentKeys   = 1 << 19
	maxRecentBlocks = 512
)

// recentWrites are the keys that the newest blocks of the chain wrote.
type recentWrites struct {
	blocks  []blockWrites // all above horizon, oldest first
	keys    int
	horizon ledger.Slot // the writes of blocks up to here are not known; 0 before the first block
}

// blockWrites are the keys that one block wrote.
type blockWrites struct {
	slot ledger.Slot
	keys map[ledger.Pubkey]written
}

// written is what one block did to a key. Several writes of one block may do both.
type written uint8

const (
	leftAlive written = 1 << iota
	closedIt
)

// add adds the block that became the tip. The first one is the root, before which no writes are needed, unless the
// horizon was set before.
func (r *recentWrites) add(b *ledger.Block) {
	if r.horizon == 0 {
		r.horizon = b.Slot
	}
	keys := make(map[ledger.Pubkey]written, len(b.Accounts))
	for i := range b.Accounts {
		if w := &b.Accounts[i]; w.Lamports == 0 {
			keys[w.Pubkey] |= closedIt
		} else {
			keys[w.Pubkey] |= leftAlive
		}
	}
	r.blocks, r.keys = append(r.blocks, blockWrites{b.Slot, keys}), r.keys+len(keys)
	for len(r.blocks) > maxRecentBlocks || r.keys > maxRecentKeys {
		r.horizon, r.keys = r.blocks[0].slot, r.keys-len(r.blocks[0].keys)
		r.blocks[0] = blockWrites{} // frees the keys, since the array stays
		r.blocks = r.blocks[1:]
	}
}

// rollBack removes the blocks after a slot.
func (r *recentWrites) rollBack(to ledger.Slot) {
	for n := len(r.blocks); n > 0 && r.blocks[n-1].slot > to; n-- {
		r.keys -= len(r.blocks[n-1].keys)
		r.blocks = r.blocks[:n-1]
	}
}

// after returns whether a block after a slot left a key alive, and the slot of the newest block that closed it, 0 for none.
// The result is wrong for a slot below the horizon.
func (r *recentWrites) after(slot ledger.Slot, key ledger.Pubkey) (alive bool, closed ledger.Slot) {
	for i := len(r.blocks) - 1; i >= 0 && r.blocks[i].slot > slot; i-- {
		did := r.blocks[i].keys[key]
		alive = alive || did&leftAlive != 0
		if did&closedIt != 0 && closed == 0 {
			closed = r.blocks[i].slot
		}
	}
	return alive, closed
}
