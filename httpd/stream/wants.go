package stream

import "ledgerd/engine/ledger"

// maxKeys is how many pubkeys and programs together one connection may name.
const maxKeys = 10_000

// wants is what a subscriber wants to hear: everything, or the updates of accounts it
// named and of accounts that a program it named owns or owned before the block.
type wants struct {
	everything bool
	pubkeys    keySet
	programs   keySet
	extended   bool
}

func (w *wants) keys() int { return w.pubkeys.len() + w.programs.len() }

// keysWith returns how many keys there are with more names, each of which is given once.
func (w *wants) keysWith(pubkeys, programs []ledger.Pubkey) int {
	n := w.keys()
	for _, k := range pubkeys {
		if !w.pubkeys.has(k) {
			n++
		}
	}
	for _, k := range programs {
		if !w.programs.has(k) {
			n++
		}
	}
	return n
}

// match reports whether a subscriber wants to hear of an update.
func (w *wants) match(u *ledger.Update) bool {
	if w.everything || w.pubkeys.has(u.Account.Pubkey) {
		return true
	}
	if u.Account.Known&ledger.FieldOwner != 0 && w.programs.has(u.Account.Owner) {
		return true
	}
	return u.OwnerBefore.Known && w.programs.has(u.OwnerBefore.Value)
}

func (w *wants) kind() kind {
	switch {
	case w.everything:
		return kindEverything
	case w.keys() > 0:
		return kindKeys
	}
	return kindNothing
}

func (w wants) form() form {
	if w.extended {
		return extended
	}
	return literal
}
