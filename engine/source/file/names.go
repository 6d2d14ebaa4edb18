package file

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"ledgerd/engine/ledger"
)

var errSlotOrder = errors.New("the slot is not above its parent's")

// blockSlot returns the slot of a block: its own if it says it, else the only number in the
// file's name above the parent's slot, else the slot after the parent, which is a
// guess. The name counts only if the block is alone in the file.
func blockSlot(own *ledger.Slot, parent ledger.Slot, name string, alone func() bool) (slot ledger.Slot, guessed bool, err error) {
	if own != nil {
		return *own, false, checkSlotOrder(*own, parent)
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
	for _, digits := range strings.FieldsFunc(name, func(c rune) bool { return c < '0' || c > '9' }) {
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || ledger.Slot(n) <= parent {
			continue
		}
		if ok && slot != ledger.Slot(n) {
			return 0, false
		}
		slot, ok = ledger.Slot(n), true
	}
	return slot, ok
}

// keyInName returns the only public key in the name of a file.
func keyInName(name string) (found ledger.Opt[ledger.Pubkey]) {
	for _, word := range strings.FieldsFunc(name, func(c rune) bool { return !isAlphanumeric(c) }) {
		k, err := ledger.ParsePubkey(word)
		if err != nil {
			continue
		}
		if found.Known && found.Value != k {
			return ledger.Opt[ledger.Pubkey]{}
		}
		found = ledger.Some(k)
	}
	return found
}

func isAlphanumeric(c rune) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
