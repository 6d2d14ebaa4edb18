package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Filter selects the accounts that a node holds if it holds only a part of the ledger: listed accounts, and
// accounts owned by a listed program. A nil *Filter selects all. It is immutable.
type Filter struct {
	owners, accounts []Pubkey // each in the order of their bytes
}

// NewFilter returns the filter of programs and accounts, nil if both lists are empty.
func NewFilter(owners, accounts []Pubkey) *Filter {
	if len(owners)+len(accounts) == 0 {
		return nil
	}
	return &Filter{sortedKeys(owners), sortedKeys(accounts)}
}

func compareKeys(a, b Pubkey) int { return a.Compare(&b) }

func sortedKeys(keys []Pubkey) []Pubkey {
	return slices.Compact(slices.SortedFunc(slices.Values(keys), compareKeys))
}

func contains(sorted []Pubkey, key *Pubkey) bool {
	_, found := slices.BinarySearchFunc(sorted, *key, compareKeys)
	return found
}

// Lists reports whether an account is selected whoever owns it. The filter must not be nil.
func (f *Filter) Lists(key *Pubkey) bool { return contains(f.accounts, key) }

// ListsOwner reports whether all accounts of a program are selected.
func (f *Filter) ListsOwner(program Pubkey) bool { return f == nil || contains(f.owners, &program) }

// Admits reports whether the node starts to hold an account in this state. It keeps an account that it holds already,
// whoever owns it later.
func (f *Filter) Admits(a *Account) bool {
	return f == nil || f.Lists(&a.Pubkey) || a.Known&FieldOwner != 0 && f.ListsOwner(a.Owner)
}

// Owners returns the listed programs in the order of their bytes. They must not be changed. The filter must not be nil.
func (f *Filter) Owners() []Pubkey { return f.owners }

// Accounts returns the listed accounts in the order of their bytes. They must not be changed. The filter must not be nil.
func (f *Filter) Accounts() []Pubkey { return f.accounts }

// JoinKeys writes keys in base58 with commas between them.
func JoinKeys(keys []Pubkey) string {
	texts := make([]string, len(keys))
	for i := range keys {
		texts[i] = keys[i].String()
	}
	return strings.Join(texts, ",")
}

// SplitKeys is the inverse of JoinKeys. Its error names the number of the invalid key.
func SplitKeys(text string) ([]Pubkey, error) {
	if text == "" {
		return nil, nil
	}
	var keys []Pubkey
	for part := range strings.SplitSeq(text, ",") {
		k, err := ParsePubkey(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("key %d of the list is not a public key in base58", len(keys)+1)
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// filterJSON is a Filter as JSON, its keys as JoinKeys writes them.
type filterJSON struct {
	Owners   string `json:"owners,omitempty"`
	Accounts string `json:"accounts,omitempty"`
}

// MarshalJSON returns the same bytes for filters that list the same.
func (f *Filter) MarshalJSON() ([]byte, error) {
	return json.Marshal(filterJSON{JoinKeys(f.Owners()), JoinKeys(f.Accounts())})
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (f *Filter) UnmarshalJSON(b []byte) error {
	var lists filterJSON
	if err := json.Unmarshal(b, &lists); err != nil {
		return err
	}
	owners, ownersErr := SplitKeys(lists.Owners)
	accounts, accountsErr := SplitKeys(lists.Accounts)
	read := NewFilter(owners, accounts)
	if err := cmp.Or(ownersErr, accountsErr); err != nil || read == nil {
		return cmp.Or(err, errors.New("a filter lists nothing"))
	}
	*f = *read
	return nil
}
