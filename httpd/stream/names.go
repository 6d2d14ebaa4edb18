package stream

import (
	"fmt"
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

// names are the keys of each kind that a message lists or a subscriber has, in ascending order, each once. A list is replaced, never changed in place, so
// copies may share it.
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

// find returns where a key stands in a list of names, or would stand.
func find(keys []ledger.Pubkey, k *ledger.Pubkey) (at int, found bool) {
	return slices.BinarySearchFunc(keys, k, func(a ledger.Pubkey, k *ledger.Pubkey) int { return a.Compare(k) })
}

func (n *names) has(kind nameKind, k *ledger.Pubkey) bool {
	_, found := find(n[kind], k)
	return found
}

// among returns those keys that are names of a kind, or those that are none.
func (n *names) among(kind nameKind, keys []ledger.Pubkey, are bool) (found []ledger.Pubkey) {
	for i := range keys {
		if n.has(kind, &keys[i]) == are {
			found = append(found, keys[i])
		}
	}
	return found
}

// plus returns the names with more of them, and which are new.
func (n names) plus(more names) (all, added names) {
	all = n
	for kind, keys := range more {
		added[kind] = n.among(nameKind(kind), keys, false)
		if len(added[kind]) > 0 {
			all[kind] = merge(n[kind], added[kind])
		}
	}
	return all, added
}

// merge returns two lists of names as one.
func merge(a, b []ledger.Pubkey) []ledger.Pubkey {
	all := make([]ledger.Pubkey, 0, len(a)+len(b))
	for i := range b {
		at, _ := find(a, &b[i])
		all = append(append(all, a[:at]...), b[i])
		a = a[at:]
	}
	return append(all, a...)
}

// minus returns the names without some, and which of these were there.
func (n names) minus(less names) (left, removed names) {
	left = n
	for kind, keys := range less {
		removed[kind] = n.among(nameKind(kind), keys, true)
		if len(removed[kind]) > 0 {
			left[kind] = slices.DeleteFunc(slices.Clone(n[kind]), func(k ledger.Pubkey) bool { return removed.has(nameKind(kind), &k) })
		}
	}
	return left, removed
}

// counts returns how many names of each kind there are, as fields of an answer: of wallets only with withWallets.
func (n *names) counts(withWallets bool) string {
	counts := fmt.Sprintf(`"pubkeys":%d,"programs":%d`, len(n[pubkeys]), len(n[programs]))
	if withWallets {
		counts += fmt.Sprintf(`,"wallets":%d`, len(n[wallets]))
	}
	return counts
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

// hasLost reports whether an account was a program's by this name before an update, and is another's after it.
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
	names      names
	where      *ledger.DataFilter // of the accounts of programs; nil: all
}

// show adds what a client asks for to the form. Once on it stays on.
func (w *wants) show(more form) {
	if w.asked |= more; w.asked.shows(extended) {
		w.form = w.asked
	}
}

// takes reports whether an update that has a name is one that the filter of programs takes, before the update or after it.
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
