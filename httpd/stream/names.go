package stream

import (
	"slices"

	"ledgerd/engine/ledger"
)

// nameKind is a way in which subscribers name accounts.
type nameKind uint8

const (
	pubkeys  nameKind = iota // the account's own key
	programs                 // the program that owns the account, or owned it before the block
	wallets                  // the wallet itself, and the wallet of a token account, now or before the block
	nameKinds
)

// maxNames is how many names of all kinds together one connection may have.
const maxNames = 10_000

// names are the keys of each kind that a message or a handshake lists, in ascending order, each once.
type names [nameKinds][]ledger.Pubkey

func (n *names) count() (count int) {
	for _, keys := range n {
		count += len(keys)
	}
	return count
}

// parse sets the names of one kind; false if one of them is none.
func (n *names) parse(kind nameKind, texts []string) bool {
	keys := make([]ledger.Pubkey, len(texts))
	for i, text := range texts {
		k, err := ledger.ParsePubkey(text)
		if err != nil {
			return false
		}
		keys[i] = k
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	n[kind] = slices.Compact(keys)
	return true
}

// name is one key by which an update may have been named.
type name struct {
	kind nameKind
	key  *ledger.Pubkey
}

// namesOf appends the keys by which an update may have been named.
func namesOf(dst []name, u *ledger.Update) []name {
	dst = append(dst, name{pubkeys, &u.Account.Pubkey}, name{wallets, &u.Account.Pubkey})
	if u.Account.Known&ledger.FieldOwner != 0 {
		dst = append(dst, name{programs, &u.Account.Owner})
	}
	if u.OwnerBefore.Known {
		dst = append(dst, name{programs, &u.OwnerBefore.Value})
	}
	if t := tokenOf(&u.Account); t != nil {
		dst = append(dst, name{wallets, &t.Owner})
	}
	if u.WalletBefore.Known {
		dst = append(dst, name{wallets, &u.WalletBefore.Value})
	}
	return dst
}

// hasLost reports whether the name is a program that owned the account before an update and does not own it after it.
func (n name) hasLost(a *ledger.Account) bool {
	return n.kind == programs && a.Exists() && n.key != &a.Owner
}

// maxNamesOf is the most that namesOf appends.
const maxNamesOf = 6

// wants is what a subscriber wants to receive: everything, or the updates of the accounts it
// named, and in which form.
type wants struct {
	everything bool
	asked      form // for: tokens and data come with extended
	form       form
	names      nameSet
	where      *ledger.DataFilter // of the accounts of programs; nil: all
}

// show adds what a client asks for to the form. Once on it stays on.
func (w *wants) show(more form) {
	if w.asked |= more; w.asked.shows(extended) {
		w.form = w.asked
	}
}

// takes reports whether the filter of programs matches an update that has name n, by the account before it or after it.
func (w *wants) takes(u *ledger.Update, n name) bool {
	if w.where == nil || n.kind != programs {
		return true
	}
	before := u.DataBefore.Known && w.where.MatchData(u.DataBefore.Value)
	switch p := u.Account.Program(); {
	case p != nil && *p == *n.key:
		return w.where.Match(&u.Account) || before && !u.OwnerBefore.Known
	case u.DataBefore.Known:
		return before
	}
	return w.where.Match(&u.Account) // whose data is what it was
}

func (w *wants) span(e *emission) (first, end int)    { return opening, e.ending() + 1 }
func (w *wants) frameBytes(e *emission, part int) int { return e.frameBytes(w.form, part) }
func (w *wants) hasHeartbeats() bool                  { return w.form.marksSlots() }
func (w *wants) size() int                            { return w.names.count() * nodeBytes }

func (w *wants) readDecimals(h *Hub, emissions []*emission) (asked int) {
	if w.form.shows(withTokens) {
		asked = h.readDecimals(h.newest(), emissions)
	}
	return asked
}

func (w *wants) appendPart(dst []byte, e *emission, part int) []byte {
	return e.appendPart(dst, w.form, part)
}

// match reports whether a subscriber wants an update.
func (w *wants) match(u *ledger.Update) bool {
	var room [maxNamesOf]name
	return w.everything ||
		slices.ContainsFunc(namesOf(room[:0], u), func(n name) bool { return w.names.has(n.kind, n.key) && w.takes(u, n) })
}
