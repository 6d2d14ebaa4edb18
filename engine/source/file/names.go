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
	if slot := slotInName(name, parent); slot.Known && alone() {
		return slot.Value, false, nil
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
func slotInName(name string, parent ledger.Slot) ledger.Opt[ledger.Slot] {
	isDigit := func(c rune) bool { return '0' <= c && c <= '9' }
	return onlyIn(name, isDigit, func(digits string) (ledger.Slot, bool) {
		n, err := strconv.ParseUint(digits, 10, 64)
		return ledger.Slot(n), err == nil && ledger.Slot(n) > parent
	})
}

// keyInName returns the only public key in the name of a file.
func keyInName(name string) ledger.Opt[ledger.Pubkey] {
	return onlyIn(name, isAlphanumeric, func(word string) (ledger.Pubkey, bool) {
		k, err := ledger.ParsePubkey(word)
		return k, err == nil
	})
}

func isAlphanumeric(c rune) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// onlyIn returns what the words of a name say, if they say one thing.
func onlyIn[T comparable](name string, isOfWord func(rune) bool, read func(word string) (T, bool)) (found ledger.Opt[T]) {
	for _, word := range strings.FieldsFunc(name, func(c rune) bool { return !isOfWord(c) }) {
		v, ok := read(word)
		switch {
		case ok && found.Known && v != found.Value:
			return ledger.Opt[T]{}
		case ok:
			found = ledger.Some(v)
		}
	}
	return found
}
