package stream

import (
	"maps"

	"ledgerd/engine/ledger"
)

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

// clone returns a copy that shares nothing.
func (w wants) clone() wants {
	w.pubkeys, w.programs = maps.Clone(w.pubkeys), maps.Clone(w.programs)
	return w
}

// add names more keys. It replaces "everything"; no keys at all mean everything.
func (w *wants) add(pubkeys, programs []ledger.Pubkey) {
	if w.everything = len(pubkeys)+len(programs) == 0; w.everything {
		clear(w.pubkeys)
		clear(w.programs)
		return
	}
	for _, k := range pubkeys {
		w.pubkeys[k] = struct{}{}
	}
	for _, k := range programs {
		w.programs[k] = struct{}{}
	}
}

// drop takes names back; all drops everything.
func (w *wants) drop(pubkeys, programs []ledger.Pubkey, all bool) {
	if all {
		w.everything = false
		clear(w.pubkeys)
		clear(w.programs)
		return
	}
	for _, k := range pubkeys {
		delete(w.pubkeys, k)
	}
	for _, k := range programs {
		delete(w.programs, k)
	}
}

func (w *wants) keys() int { return len(w.pubkeys) + len(w.programs) }

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

func (w *wants) form() form {
	if w.extended {
		return extended
	}
	return literal
}
