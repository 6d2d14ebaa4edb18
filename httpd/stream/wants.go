package stream

import "ledgerd/engine/ledger"

// maxKeys is how many pubkeys and programs together one connection may name.
const maxKeys = 10_000

// keySet is a set of pubkeys or programs.
type keySet map[ledger.Pubkey]struct{}

// wants is what a subscriber wants to hear: everything, or the updates of accounts it
// named and of accounts that a program it named owns or owned before the block.
type wants struct {
	everything bool
	pubkeys    keySet
	programs   keySet
	extended   bool
}

// silence wants nothing.
func silence() wants { return wants{pubkeys: keySet{}, programs: keySet{}} }

func (w *wants) keys() int { return len(w.pubkeys) + len(w.programs) }

// keysWith returns how many keys there are with more names, each of which is given once.
func (w *wants) keysWith(pubkeys, programs []ledger.Pubkey) int {
	n := w.keys()
	for _, k := range pubkeys {
		if !has(w.pubkeys, k) {
			n++
		}
	}
	for _, k := range programs {
		if !has(w.programs, k) {
			n++
		}
	}
	return n
}

// match reports whether a subscriber wants to hear of an update.
func (w *wants) match(u *ledger.Update) bool {
	if w.everything || has(w.pubkeys, u.Account.Pubkey) {
		return true
	}
	if u.Account.Known&ledger.FieldOwner != 0 && has(w.programs, u.Account.Owner) {
		return true
	}
	return u.OwnerBefore.Known && has(w.programs, u.OwnerBefore.Value)
}

func has(s keySet, k ledger.Pubkey) bool {
	_, ok := s[k]
	return ok
}

func (w wants) form() form {
	if w.extended {
		return extended
	}
	return literal
}
