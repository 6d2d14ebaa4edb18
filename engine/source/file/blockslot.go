package file

import (
	"errors"
	"math"
	"strconv"

	"ledgerd/engine/ledger"
)

var errSlotOrder = errors.New("the slot is not above its parent's")

// blockSlot returns the slot of a block: its own if it says it, else the only number in the
// file's name above the parent's slot, else the slot after the parent, which is a
// guess. The name counts only if the block is alone in the file.
func blockSlot(own *uint64, parent ledger.Slot, name string, alone func() bool) (slot ledger.Slot, guessed bool, err error) {
	if own != nil {
		slot = ledger.Slot(*own)
		return slot, false, checkSlotOrder(slot, parent)
	}
	if slot, ok := slotInName(name, parent); ok && alone() {
		return slot, false, nil
	}
	if parent == math.MaxUint64 {
		return 0, false, errSlotOrder
	}
	return parent + 1, true, nil
}

// checkSlotOrder returns an error unless the slot is above its parent's. Only slot 0, which has
// no parent, may be its own.
func checkSlotOrder(slot, parent ledger.Slot) error {
	if slot > parent || (slot == 0 && parent == 0) {
		return nil
	}
	return errSlotOrder
}

// slotInName returns the only number in name above parent.
func slotInName(name string, parent ledger.Slot) (slot ledger.Slot, ok bool) {
	for len(name) > 0 {
		digits := 0
		for digits < len(name) && '0' <= name[digits] && name[digits] <= '9' {
			digits++
		}
		n, err := strconv.ParseUint(name[:digits], 10, 64)
		if err == nil && ledger.Slot(n) > parent {
			if ok && slot != ledger.Slot(n) {
				return 0, false
			}
			slot, ok = ledger.Slot(n), true
		}
		name = name[max(digits, 1):]
	}
	return slot, ok
}
