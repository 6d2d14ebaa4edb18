package shard

import (
	"fmt"
	"reflect"
	"testing"

	"ledgerd/engine/ledger"
)

// node is some shards that together hold a ledger.
type node struct {
	t      *testing.T
	shards []*Shard
}

func newNode(t *testing.T, shards int) *node {
	n := &node{t: t}
	for i := range shards {
		n.shards = append(n.shards, New(i, shards))
	}
	return n
}

func (n *node) setFilter(f *ledger.Filter) {
	for _, s := range n.shards {
		s.SetFilter(f)
	}
}

// run runs the shards until the test ends.
func (n *node) run() *node {
	for _, s := range n.shards {
		run(n.t, s)
	}
	return n
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
		if err := s.Restore(c); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *node) freeze(v ledger.Version) (all []*Frozen, err error) {
	var freezing []*Freezing
	for _, s := range n.shards {
		freezing = append(freezing, s.Freeze(v))
	}
	for _, f := range freezing {
		frozen, err := f.Wait()
		if err != nil {
			return nil, err
		}
		all = append(all, frozen)
	}
	return all, nil
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

func ask(about string, i int) string { return fmt.Sprint(about, " ", i) }

// answers are everything a node can be asked at one version about so many keys, by question. Lists are read in pages of
// at most so many accounts.
func (n *node) answers(keys int, v ledger.Version, page int) map[string]any {
	all := make(map[string]any)
	put := func(question string, answer any, err error) {
		if err != nil {
			n.t.Fatalf("%s at version %d: %v", question, v, err)
		}
		all[question] = answer
	}
	for i := range keys {
		k := testKey(i)
		s := n.shards[Of(k.Prefix(), len(n.shards))]
		a, found, err := s.Account(k, v, soon())
		put(ask("account", i), []any{a, found}, err)
		a, found, err = s.askAccount(k, v, soon())
		put(ask("account by mailbox", i), []any{a, found}, err)
		few, err := s.Accounts([]ledger.Pubkey{k, k}, v, soon())
		put(ask("accounts", i), few, err)
		mints, err := s.Mints([]ledger.Pubkey{k}, v, soon())
		put(ask("mint", i), mints, err)
	}
	for i := range testGroups {
		lists := map[string]Members{"program": {Group: program(i)}, "wallet": {Group: wallet(i), ByWallet: true}}
		for name, m := range lists {
			got, err := n.pages(page, func(s *Shard, p Page) (Page, error) {
				return s.List(m, p.Next, page, v, soon(), p.Accounts)
			})
			put(ask(name, i), got, err)
		}
	}
	got, err := n.pages(pageKeys, func(s *Shard, p Page) (Page, error) {
		next, err := s.Scan(p.Next, v, soon())
		next.Accounts = append(p.Accounts, next.Accounts...)
		return next, err
	})
	put("scan", got, err)
	mints, err := n.scanMints(v)
	put("mints", mints, err)
	return all
}

// pages reads a list of all shards.
func (n *node) pages(most int, read func(*Shard, Page) (Page, error)) (all []ledger.Account, err error) {
	for _, s := range n.shards {
		for page := (Page{Accounts: all}); !page.Done; all = page.Accounts {
			if page, err = read(s, page); err != nil {
				return nil, err
			}
			if added := len(page.Accounts) - len(all); added < 0 || added > most {
				n.t.Fatalf("a page of %d accounts, want at most %d", added, most)
			}
		}
	}
	if len(all) == 0 {
		return nil, nil // as the model has it
	}
	return all, nil
}

func (n *node) scanMints(v ledger.Version) (all []ledger.MintWrite, err error) {
	for _, s := range n.shards {
		var after ledger.Opt[ledger.Pubkey]
		for page := (MintPage{}); !page.Done; {
			if page, err = s.ScanMints(after, v, soon()); err != nil {
				return nil, err
			}
			all = append(all, page.Mints...)
			if len(all) > 0 {
				after = ledger.Some(all[len(all)-1].Pubkey)
			}
		}
	}
	return all, nil
}

// differentlyApplied says what is not the same, "" if all is.
func differentlyApplied(got, want *Applied) string {
	if got.Hash != want.Hash {
		return fmt.Sprintf("hash %s, want %s", got.Hash, want.Hash)
	}
	if diff := differentLists(got.Updates, want.Updates); diff != "" {
		return "updates: " + diff
	}
	if diff := differentLists(got.Unchanged, want.Unchanged); diff != "" {
		return "unchanged: " + diff
	}
	return ""
}

func differentLists[T any](got, want []T) string {
	for i := range min(len(got), len(want)) {
		if !reflect.DeepEqual(got[i], want[i]) {
			return fmt.Sprintf("number %d is\n%+v\nwant\n%+v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d, want %d", len(got), len(want))
	}
	return ""
}

func difference(got, want map[string]any) string {
	for question, w := range want {
		if g := got[question]; !reflect.DeepEqual(g, w) {
			return fmt.Sprintf("%s:\ngot  %+v\nwant %+v", question, g, w)
		}
	}
	return ""
}
