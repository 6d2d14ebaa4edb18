package shard

import (
	"cmp"
	"fmt"
	"reflect"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// node is some shards that together hold a ledger.
type node struct {
	t      *testing.T
	shards []*Shard
	mints  bool // the shards list the token accounts of a mint
}

func newNode(t *testing.T, shards int, f *ledger.Filter, mints bool) *node {
	n := &node{t: t, mints: mints}
	for i := range shards {
		n.shards = append(n.shards, New(i, shards))
		n.shards[i].SetFilter(f)
		if mints {
			n.shards[i].IndexMints()
		}
	}
	return n
}

// run runs the shards until the test ends.
func (n *node) run() {
	for _, s := range n.shards {
		run(n.t, s)
	}
}

// restore fills the shards with what was frozen. The hash is all given to the last.
func (n *node) restore(v ledger.Version, hash ledger.StateHash, frozen []*Frozen) {
	n.t.Helper()
	for i, s := range n.shards {
		c := Content{
			Version: v,
			Accounts: func(visit func(*ledger.Account) bool) error {
				for _, f := range frozen {
					f.Accounts(func(a *ledger.Account) bool { return !s.state.owns(a.Pubkey.Prefix()) || visit(a) })
				}
				return nil
			},
			Mints: func(visit func(ledger.MintWrite) bool) error {
				for _, f := range frozen {
					f.Mints(func(m ledger.MintWrite) bool { return !s.state.owns(m.Pubkey.Prefix()) || visit(m) })
				}
				return nil
			},
		}
		if i == len(n.shards)-1 {
			c.Hash = hash
		}
		must(n.t, s.Restore(c))
	}
}

func (n *node) freeze(v ledger.Version) []*Frozen {
	frozen, err := FreezeAll(n.shards, v)
	must(n.t, err)
	return frozen
}

// each has every shard do the same and returns all they did, in key order.
func (n *node) each(send func(*Shard) *Task) *Applied {
	all := &Applied{}
	for _, s := range n.shards {
		done := wait(n.t, send(s))
		all.Updates = append(all.Updates, done.Updates...)
		all.Unchanged = append(all.Unchanged, done.Unchanged...)
		all.Hash.Add(done.Hash)
	}
	return all
}

func (n *node) counted() (c [2]int64) {
	for _, s := range n.shards {
		c[0] += s.Counters().Accounts.Load()
		c[1] += s.Counters().TokenAccounts.Load()
	}
	return c
}

// lookUntil is Account that looks until it is answered.
func (s *Shard) lookUntil(key ledger.Pubkey, v ledger.Version, _ time.Time) (a ledger.Account, found bool, err error) {
	for answered := false; !answered; {
		a, found, answered = s.TryAccount(key, v)
	}
	return a, found, nil
}

// compare asks a node everything it can be asked at one version, about these keys and in lists, and compares the answers. Lists are read in
// pages of at most so many accounts.
func (n *node) compare(keys []int, v ledger.Version, page int, want *plain) {
	n.t.Helper()
	equal := func(about string, i int, got, want any, err error) {
		n.t.Helper()
		if err != nil || !reflect.DeepEqual(got, want) {
			n.t.Fatalf("%s %d at version %d: %v\ngot  %+v\nwant %+v", about, i, v, err, got, want)
		}
	}
	for _, i := range keys {
		k := testKey(i)
		s := n.shards[Of(k.Prefix(), len(n.shards))]
		whole, shallow := ledger.Account{Pubkey: k}, ledger.Account{}
		held := want.accounts[k]
		if held != nil {
			whole, shallow = *held, *held
			shallow.Token, shallow.Data, shallow.FieldProvenance = nil, ledger.Data{}, nil
		}
		for name, read := range map[string]func(ledger.Pubkey, ledger.Version, time.Time) (ledger.Account, bool, error){
			"account": s.Account, "look": s.lookUntil,
		} {
			a, found, err := read(k, v, soon())
			equal(name, i, []any{a, found}, []any{shallow, held != nil}, err)
		}
		read := func(st *state) []ledger.Account {
			few := make([]ledger.Account, 2)
			st.readAccounts([]ledger.Pubkey{k, k}, v, few)
			return few
		}
		few, err := queryAt(s, v, soon(), read)
		equal("accounts", i, few, []ledger.Account{whole, whole}, err)
		for few = nil; !s.tryRead(v, func(st *state) { few = read(st) }); {
		}
		equal("accounts in place", i, few, []ledger.Account{whole, whole}, nil)
		mints := make([]*ledger.Mint, 1)
		err = s.Mints([]ledger.Pubkey{k}, v, soon(), mints)
		equal("mint", i, mints, []*ledger.Mint{want.mints[k]}, err)
	}
	for i := range testGroups {
		for m, member := range map[Members]func(*ledger.Account) bool{
			{Group: program(i)}:              func(a *ledger.Account) bool { return ownerOf(a) == ledger.Some(program(i)) },
			{Group: wallet(i), By: ByWallet}: func(a *ledger.Account) bool { return walletOf(a) == ledger.Some(wallet(i)) },
			{Group: wallet(i), By: ByDelegate}: func(a *ledger.Account) bool {
				return walletOf(a).Known && a.Token.Details.Value.Delegate == ledger.Some(wallet(i))
			},
			{Group: testKey(i), By: ByMint}: func(a *ledger.Account) bool { return walletOf(a).Known && a.Token.Mint == testKey(i) },
			{Group: program(i), Where: &ledger.DataFilter{Size: ledger.Some(uint64(1))}}: func(a *ledger.Account) bool {
				return ownerOf(a) == ledger.Some(program(i)) && a.Known&ledger.FieldData != 0 && a.Data.Len() == 1
			},
		} {
			if m.By == ByMint && !n.mints {
				continue
			}
			unknown := false
			got := n.pages(page, func(s *Shard, p Page) (Page, error) {
				next, err := s.List(m, p.Next, page, v, soon(), p.Accounts)
				unknown = unknown || next.DataUnknown
				return next, err
			})
			equal(fmt.Sprintf("%+v, list", m), i, got, want.where(member), nil)
			isUnknown := func(a *ledger.Account) bool {
				return ownerOf(a) == ledger.Some(program(i)) && a.Known&ledger.FieldData == 0
			}
			equal(fmt.Sprintf("%+v, members of unknown data", m), i, unknown, m.Where != nil && len(want.where(isUnknown)) > 0, nil)
		}
	}
	frozen := n.freeze(v)
	n.checkFrozen(frozen, want)
	ReleaseAll(frozen)
}

// checkFrozen compares all that copies hold.
func (n *node) checkFrozen(frozen []*Frozen, want *plain) {
	var accounts []ledger.Account
	var mints []ledger.MintWrite
	for _, f := range frozen {
		f.Accounts(func(a *ledger.Account) bool {
			accounts = append(accounts, *ledgertest.CloneAccount(a))
			return true
		})
		f.Mints(func(m ledger.MintWrite) bool { mints = append(mints, m); return true })
	}
	all := want.where(func(*ledger.Account) bool { return true })
	if diff := cmp.Or(differentLists("frozen account", accounts, all), differentLists("frozen mint", mints, want.allMints())); diff != "" {
		n.t.Error(diff)
	}
}

// pages reads a list of all shards.
func (n *node) pages(most int, read func(*Shard, Page) (Page, error)) (all []ledger.Account) {
	n.t.Helper()
	for _, s := range n.shards {
		for page := (Page{Accounts: all}); !page.Done; all = page.Accounts {
			var err error
			page, err = read(s, page)
			must(n.t, err)
			if added := len(page.Accounts) - len(all); added < 0 || added > most {
				n.t.Fatalf("a page of %d accounts, want at most %d", added, most)
			}
		}
	}
	if len(all) == 0 {
		return nil // as the model has it
	}
	return all
}

// differentlyApplied says what is not the same, "" if all is.
func differentlyApplied(got, want *Applied) string {
	return cmp.Or(differentLists("hash", []ledger.StateHash{got.Hash}, []ledger.StateHash{want.Hash}),
		differentLists("update", got.Updates, want.Updates), differentLists("unchanged", got.Unchanged, want.Unchanged))
}

func differentLists[T any](what string, got, want []T) string {
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Sprintf("%s %d is\n%+v\nwant\n%+v", what, i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d of %s, want %d", len(got), what, len(want))
	}
	return ""
}
