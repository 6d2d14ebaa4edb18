package fill

import "ledgerd/engine/ledger"

const (
	// maxTouched and maxTouchedBlocks bound the touched keys, at some 64 bytes each. They reach back over the unfinalized blocks of a
	// busy ledger, and some more for answers that are on their way: an answer of before them is asked for again.
	maxTouched       = 1 << 19
	maxTouchedBlocks = 512
)

// touched is a ring of the keys that the newest blocks of the chain wrote.
type touched struct {
	blocks  []touchedBlock // all above horizon, oldest first
	keys    int
	horizon ledger.Slot
	begun   bool
}

type touchedBlock struct {
	slot ledger.Slot
	keys map[ledger.Pubkey]written
}

// written says what one block did to a key. Several writes of one block may do both.
type written uint8

const (
	leftAlive written = 1 << iota
	closedIt
)

// begin says that nothing is known of the blocks up to a slot.
func (t *touched) begin(slot ledger.Slot) { t.horizon, t.begun = slot, true }

// add adds the block that became the tip. The first block ever is the root, which no answer has to look behind.
func (t *touched) add(b *ledger.Block) {
	if !t.begun {
		t.begin(b.Slot)
	}
	keys := make(map[ledger.Pubkey]written, len(b.Accounts))
	for i := range b.Accounts {
		if w := &b.Accounts[i]; w.Lamports == 0 {
			keys[w.Pubkey] |= closedIt
		} else {
			keys[w.Pubkey] |= leftAlive
		}
	}
	t.blocks, t.keys = append(t.blocks, touchedBlock{b.Slot, keys}), t.keys+len(keys)
	for len(t.blocks) > maxTouchedBlocks || t.keys > maxTouched {
		t.horizon, t.keys = t.blocks[0].slot, t.keys-len(t.blocks[0].keys)
		t.blocks[0] = touchedBlock{} // the array lives on, the keys must not
		t.blocks = t.blocks[1:]
	}
}

// rollBack forgets the blocks after a slot.
func (t *touched) rollBack(to ledger.Slot) {
	for n := len(t.blocks); n > 0 && t.blocks[n-1].slot > to; n-- {
		t.keys -= len(t.blocks[n-1].keys)
		t.blocks = t.blocks[:n-1]
	}
}

// after says whether a block after a slot left a key alive, and the slot of the newest that closed it, 0 for none. The
// slot must not be below the horizon.
func (t *touched) after(slot ledger.Slot, key ledger.Pubkey) (alive bool, closed ledger.Slot) {
	for i := len(t.blocks) - 1; i >= 0 && t.blocks[i].slot > slot; i-- {
		did := t.blocks[i].keys[key]
		alive = alive || did&leftAlive != 0
		if did&closedIt != 0 && closed == 0 {
			closed = t.blocks[i].slot
		}
	}
	return alive, closed
}
