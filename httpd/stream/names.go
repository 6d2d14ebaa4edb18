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

// kindNames are the fields of messages and the query parameters that list names.
var kindNames = [nameKinds]string{"pubkeys", "programs", "wallets"}

// maxNames is how many names of all kinds together one connection may have.
const maxNames = 10_000

// names are the keys of each kind in ascending order, each once. A list is replaced, never
// changed in place, so copies may share it.
type names [nameKinds][]ledger.Pubkey

func (n *names) count() (count int) {
	for _, keys := range n {
		count += len(keys)
	}
	return count
}

// counts returns how many names of each kind there are, as fields of an answer: of wallets only with
// withWallets.
func (n *names) counts(withWallets bool) string {
	counts := fmt.Sprintf(`"pubkeys":%d,"programs":%d`, len(n[pubkeys]), len(n[programs]))
	if withWallets {
		counts += fmt.Sprintf(`,"wallets":%d`, len(n[wallets]))
	}
	return counts
}

func (n *names) has(kind nameKind, k *ledger.Pubkey) bool {
	_, found := slices.BinarySearchFunc(n[kind], k, func(a ledger.Pubkey, b *ledger.Pubkey) int { return a.Compare(b) })
	return found
}

// plus returns the names of both, which share none.
func (n names) plus(more names) names {
	for kind := range n {
		n[kind] = merge(n[kind], more[kind])
	}
	return n
}

// minus returns the names that are not among others.
func (n names) minus(others names) (left names) {
	for kind, keys := range n {
		for i := range keys {
			if !others.has(nameKind(kind), &keys[i]) {
				left[kind] = append(left[kind], keys[i])
			}
		}
	}
	return left
}

// merge merges two lists. It takes time in proportion to both. What is in both is there twice.
func merge(a, b []ledger.Pubkey) []ledger.Pubkey {
	if len(b) == 0 {
		return a
	}
	out := make([]ledger.Pubkey, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Compare(&b[0]) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// parse sets the names of one kind.
func (n *names) parse(kind nameKind, texts []string) error {
	keys := make([]ledger.Pubkey, len(texts))
	for i, text := range texts {
		k, err := ledger.ParsePubkey(text)
		if err != nil {
			return fmt.Errorf("%s must be a list of base58 public keys", kindNames[kind])
		}
		keys[i] = k
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	n[kind] = slices.Compact(keys)
	return nil
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

// maxNamesOf is the most that namesOf appends.
const maxNamesOf = 6

// wants is what a subscriber wants to receive: everything, or the updates of the accounts it
// named, and in which form.
type wants struct {
	everything bool
	tokens     bool // asked for: they come with extended
	form       form
	names      names
}

// show adds what a client asks for to the form. Once on it stays on.
func (w *wants) show(extend, tokens bool) {
	w.tokens = w.tokens || tokens
	if extend {
		w.form = max(w.form, extended)
	}
	if w.tokens && w.form == extended {
		w.form = withTokens
	}
}

// match reports whether a subscriber wants an update.
func (w *wants) match(u *ledger.Update) bool {
	var room [maxNamesOf]name
	return w.everything ||
		slices.ContainsFunc(namesOf(room[:0], u), func(n name) bool { return w.names.has(n.kind, n.key) })
}

// index leads from a key to the subscribers that named it.
type index map[ledger.Pubkey][]*subscriber

// add enters a subscriber that is not there yet under each of the keys.
func (x index) add(keys []ledger.Pubkey, s *subscriber) {
	for _, k := range keys {
		x[k] = append(x[k], s)
	}
}

// remove takes a subscriber out that is there under each of the keys.
func (x index) remove(keys []ledger.Pubkey, s *subscriber) {
	for _, k := range keys {
		at := slices.Index(x[k], s)
		x[k] = slices.Delete(x[k], at, at+1)
		if len(x[k]) == 0 {
			delete(x, k)
		}
	}
}
