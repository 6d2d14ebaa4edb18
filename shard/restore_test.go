package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/shard/packed"
)

// TestRestoredShardsGoOnAsTheOriginal makes random histories, freezes them at a version, fills
// other shards with what was frozen, and compares all answers at that version, everything that is
// applied to both from then on, and all answers after.
func TestRestoredShardsGoOnAsTheOriginal(t *testing.T) {
	for round := range 20 {
		h := &history{r: seeded(t, uint64(round)), keys: 30, node: newNode(t, 1+round%3)}
		if round%10 == 0 {
			h.keys = 600
		}
		for range 30 + h.r.IntN(30) {
			h.step()
		}
		v := h.final().version
		frozen := h.node.freeze(v)
		before := h.next // what was applied when the snapshot was taken
		want := h.node.answers(h.keys, v)
		replay := slices.DeleteFunc(slices.Clone(h.ops), func(o op) bool { return o.version <= v })
		for range 20 {
			h.step() // what comes now must not show in what is frozen
		}
		later := slices.DeleteFunc(slices.Clone(h.ops), func(o op) bool { return o.at < before })

		for _, shards := range []int{1, 2, 5} {
			other := restored(t, shards, v, h.hashes[v], frozen)
			if got := other.answers(h.keys, v); !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d, version %d: %d shards answer otherwise than %d did: %s", round, v, shards, len(h.node.shards), difference(got, want))
			}
			for _, s := range other.shards {
				if _, _, err := s.Account(ledger.Pubkey{}, v-1, soon()); err != ErrFolded {
					t.Fatalf("round %d: a read below version %d: %v, want that it is folded", round, v, err)
				}
			}
			for _, o := range slices.Concat(replay, later) {
				if diff := differentlyApplied(o.do(other), o.applied); diff != "" {
					t.Fatalf("round %d: %d restored shards did op %d, of version %d, otherwise: %s", round, shards, o.at, o.version, diff)
				}
			}
			if got, want := other.answers(h.keys, h.version), h.node.answers(h.keys, h.version); !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d: after version %d, %d shards answer otherwise: %s", round, h.version, shards, difference(got, want))
			}
			if got, want := other.counted(), h.node.counted(); got != want {
				t.Fatalf("round %d: restored shards count %v, want %v", round, got, want)
			}
		}
	}
}

// node is some shards that together hold a ledger.
type node struct {
	t      *testing.T
	shards []*Shard
}

func newNode(t *testing.T, shards int) *node {
	n := &node{t: t}
	for i := range shards {
		n.shards = append(n.shards, run(t, New(i, shards)))
	}
	return n
}

// restored returns running shards filled with what was frozen. The hash is all given to the last.
func restored(t *testing.T, shards int, v ledger.Version, hash ledger.StateHash, frozen []*Frozen) *node {
	t.Helper()
	n := &node{t: t}
	for i := range shards {
		s := New(i, shards)
		c := Content{Version: v, Accounts: everyAccount(frozen, s.state), Mints: everyMint(frozen, s.state)}
		if i == shards-1 {
			c.Hash = hash
		}
		if err := s.Restore(c); err != nil {
			t.Fatal(err)
		}
		n.shards = append(n.shards, run(t, s))
	}
	return n
}

// everyAccount visits what is s's of the accounts frozen in several shards.
func everyAccount(frozen []*Frozen, s *state) func(func(*ledger.Account) bool) error {
	return func(visit func(*ledger.Account) bool) error {
		for _, f := range frozen {
			f.Accounts(func(a *ledger.Account) bool { return !s.owns(a.Pubkey.Prefix()) || visit(a) })
		}
		return nil
	}
}

func everyMint(frozen []*Frozen, s *state) func(func(ledger.MintWrite) bool) error {
	return func(visit func(ledger.MintWrite) bool) error {
		for _, f := range frozen {
			f.Mints(func(m ledger.MintWrite) bool { return !s.owns(m.Pubkey.Prefix()) || visit(m) })
		}
		return nil
	}
}

func (n *node) freeze(v ledger.Version) (all []*Frozen) {
	var freezing []*Freezing
	for _, s := range n.shards {
		freezing = append(freezing, s.Freeze(v))
	}
	for _, f := range freezing {
		frozen, err := f.Wait()
		if err != nil {
			n.t.Fatal(err)
		}
		all = append(all, frozen)
	}
	return all
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

// answers are everything a node can be asked at one version about so many keys, by question.
func (n *node) answers(keys int, v ledger.Version) map[string]any {
	all := make(map[string]any)
	put := func(question string, answer any, err error) {
		if err != nil {
			n.t.Fatalf("%s at version %d: %v", question, v, err)
		}
		all[question] = answer
	}
	for i := range keys {
		k := key(i)
		s := n.shards[Of(k.Prefix(), len(n.shards))]
		a, found, err := s.Account(k, v, soon())
		put(fmt.Sprint("account ", i), []any{a, found}, err)
		few, err := s.Accounts([]ledger.Pubkey{k, k}, v, soon())
		put(fmt.Sprint("accounts ", i), few, err)
		mints, err := s.Mints([]ledger.Pubkey{k}, v, soon())
		put(fmt.Sprint("mint ", i), mints, err)
	}
	for i := range testGroups {
		put(fmt.Sprint("program ", i), n.list(Members{Group: program(i)}, v), nil)
		put(fmt.Sprint("wallet ", i), n.list(Members{Group: wallet(i), ByWallet: true}, v), nil)
	}
	put("scan", n.scan(v), nil)
	put("mints", n.scanMints(v), nil)
	return all
}

func (n *node) list(m Members, v ledger.Version) (all []ledger.Account) {
	for _, s := range n.shards {
		for page := (Page{}); !page.Done; {
			var err error
			if page, err = s.List(m, page.Next, 100, v, soon(), nil); err != nil {
				n.t.Fatal(err)
			}
			all = append(all, page.Accounts...)
		}
	}
	return all
}

func (n *node) scan(v ledger.Version) (all []ledger.Account) {
	for _, s := range n.shards {
		for page := (Page{}); !page.Done; {
			var err error
			if page, err = s.Scan(page.Next, v, soon()); err != nil {
				n.t.Fatal(err)
			}
			all = append(all, page.Accounts...)
		}
	}
	return all
}

func (n *node) scanMints(v ledger.Version) (all []ledger.MintWrite) {
	for _, s := range n.shards {
		var after ledger.Opt[ledger.Pubkey]
		for page := (MintPage{}); !page.Done; {
			var err error
			if page, err = s.ScanMints(after, v, soon()); err != nil {
				n.t.Fatal(err)
			}
			all = append(all, page.Mints...)
			if len(all) > 0 {
				after = ledger.Some(all[len(all)-1].Pubkey)
			}
		}
	}
	return all
}

// differentlyApplied says what is not the same, "" if all is.
func differentlyApplied(got, want *Applied) string {
	if got.Hash != want.Hash {
		return fmt.Sprintf("hash %s, want %s", got.Hash, want.Hash)
	}
	for what, lists := range map[string][2][]any{
		"updates":   {anySlice(got.Updates), anySlice(want.Updates)},
		"unchanged": {anySlice(got.Unchanged), anySlice(want.Unchanged)},
	} {
		for i := range max(len(lists[0]), len(lists[1])) {
			if i >= len(lists[0]) || i >= len(lists[1]) || !reflect.DeepEqual(lists[0][i], lists[1][i]) {
				return fmt.Sprintf("%d %s, want %d; from number %d on got\n%+v\nwant\n%+v", len(lists[0]), what, len(lists[1]), i, first(lists[0][i:]), first(lists[1][i:]))
			}
		}
	}
	return ""
}

func first(all []any) any {
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func anySlice[T any](all []T) (out []any) {
	for _, v := range all {
		out = append(out, v)
	}
	return out
}

func difference(got, want map[string]any) string {
	for question, w := range want {
		if g := got[question]; !reflect.DeepEqual(g, w) {
			return fmt.Sprintf("%s:\ngot  %+v\nwant %+v", question, g, w)
		}
	}
	return "other questions"
}

// TestRestoreRefusesBadContent gives a shard content that is not a shard's, and content that
// fails, and checks that nothing of it stays.
func TestRestoreRefusesBadContent(t *testing.T) {
	var keys []ledger.Pubkey // of shard 1 of 2, in order
	for i := 0; len(keys) < 4; i++ {
		if k := key(i); Of(k.Prefix(), 2) == 1 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	foreign := ledger.Pubkey{1}
	broken := errors.New("broken")
	tests := map[string]struct {
		accounts, mints []ledger.Pubkey
		fails           error // of the accounts, then of the mints
		mintsFail       error
		want            error
	}{
		"good":                   {keys, keys, nil, nil, nil},
		"empty":                  {nil, nil, nil, nil, nil},
		"account twice":          {[]ledger.Pubkey{keys[0], keys[1], keys[1]}, nil, nil, nil, ledger.ErrCorrupt},
		"accounts out of order":  {[]ledger.Pubkey{keys[1], keys[0]}, nil, nil, nil, ledger.ErrCorrupt},
		"another's account":      {[]ledger.Pubkey{foreign, keys[0]}, nil, nil, nil, ledger.ErrCorrupt},
		"mint twice":             {keys, []ledger.Pubkey{keys[2], keys[2]}, nil, nil, ledger.ErrCorrupt},
		"mints out of order":     {keys, []ledger.Pubkey{keys[2], keys[1]}, nil, nil, ledger.ErrCorrupt},
		"another's mint":         {keys, []ledger.Pubkey{foreign}, nil, nil, ledger.ErrCorrupt},
		"accounts fail":          {keys, keys, broken, nil, broken},
		"mints fail":             {keys, keys, nil, broken, broken},
		"wrong before it failed": {[]ledger.Pubkey{foreign}, nil, broken, nil, ledger.ErrCorrupt},
	}
	for name, tt := range tests {
		s := New(1, 2)
		err := s.Restore(Content{
			Version: 7,
			Accounts: func(visit func(*ledger.Account) bool) error {
				for _, k := range tt.accounts {
					if !visit(&ledger.Account{Pubkey: k, Lamports: 1}) {
						break
					}
				}
				return tt.fails
			},
			Mints: func(visit func(ledger.MintWrite) bool) error {
				for _, k := range tt.mints {
					if !visit(ledger.MintWrite{Pubkey: k}) {
						break
					}
				}
				return tt.mintsFail
			},
		})
		if !errors.Is(err, tt.want) || tt.want == broken && err != broken {
			t.Errorf("%s: Restore: %v, want %v", name, err, tt.want)
		}
		if held, want := s.Counters().Accounts.Load(), int64(len(tt.accounts)); err == nil && held != want || err != nil && (held != 0 || s.state.accounts.base.Len() != 0) {
			t.Errorf("%s: %d accounts are held after %v", name, held, err)
		}
	}
}

// TestRestoredTreesAreWellFilled compares what a tree of sorted items takes with one of items inserted at
// random, and writes to both.
func TestRestoredTreesAreWellFilled(t *testing.T) {
	const n = 100_000
	r := rand.New(rand.NewPCG(1, 1))
	random, loaded := newIndex(), newIndex()
	bytes := func(fill func()) float64 {
		before := heapBytes()
		fill()
		return float64(heapBytes()-before) / n
	}
	grown := bytes(func() {
		for _, i := range r.Perm(n) {
			random.insert(ledger.Pubkey{}, key(i))
		}
	})
	items := random.tree.Items()
	restored := bytes(func() {
		for _, m := range items {
			loaded.tree.Load(m)
		}
		packed.Pack(loaded.tree)
	})
	runtime.KeepAlive(items)
	t.Logf("%.0f bytes an entry inserted, %.0f loaded", grown, restored)
	if restored > grown*1.05 {
		t.Errorf("%.0f bytes an entry, want no more than the %.0f of random inserts", restored, grown)
	}
	for i := range n {
		k := key(i + n/2)
		if i%3 == 0 {
			k = key(r.IntN(n))
			random.remove(ledger.Pubkey{}, k)
			loaded.remove(ledger.Pubkey{}, k)
			continue
		}
		random.insert(ledger.Pubkey{}, k)
		loaded.insert(ledger.Pubkey{}, k)
	}
	if !slices.Equal(random.tree.Items(), loaded.tree.Items()) {
		t.Error("after the same writes the trees hold different items")
	}
}

// TestCountersAreReadDuringRestore reads counters while a shard is filled, as metrics are asked for
// during recovery. The race detector is the judge.
func TestCountersAreReadDuringRestore(t *testing.T) {
	s := New(0, 1)
	c := content(many(1000))
	began := make(chan struct{})
	accounts := c.Accounts
	c.Accounts = func(visit func(*ledger.Account) bool) error {
		close(began)
		return accounts(visit)
	}
	var reader sync.WaitGroup
	reader.Go(func() {
		<-began
		for s.Counters().Accounts.Load() == 0 {
			runtime.Gosched()
		}
	})
	if err := s.Restore(c); err != nil {
		t.Error(err)
	}
	reader.Wait()
}
