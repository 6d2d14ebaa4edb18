package shard

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// G20, G21: TestShardsEqualTheModel makes random histories and compares all that is applied, all answers at a random version after
// each step, and frozen copies, which are walked meanwhile, with plain maps. Shards that are restored from a copy then do
// the rest of the history and have the same answers.
func TestShardsEqualTheModel(t *testing.T) {
	for round := range ledgertest.Sample(20, 8, 3) {
		h := newHistory(t, uint64(round), 1+round%3)
		for range 30 + h.r.IntN(30) {
			h.step()
			h.check(h.held())
		}
		v := h.final().version
		frozen := h.node.freeze(v)
		before, then := len(h.ops), h.model.versions[v]
		for range 20 {
			h.step() // what comes now must not show in what is frozen
		}
		h.walkers.Wait()
		for _, shards := range []int{1, 2, 5} {
			other := newNode(t, shards, h.model.filter, h.node.mints)
			other.restore(v, then.hash(), frozen)
			other.run()
			h.compare(other, v, then)
			for i, o := range h.ops {
				if i < before && o.version <= v { // a fold, or in the copy
					continue
				}
				if diff := differentlyApplied(o.do(other), o.want); diff != "" {
					t.Fatalf("round %d: %d restored shards did version %d otherwise: %s", round, shards, o.version, diff)
				}
			}
			h.compare(other, h.model.newest, h.model.versions[h.model.newest])
		}
		for _, o := range h.ops { // later work must not have changed what was applied
			if diff := differentlyApplied(o.got, o.want); diff != "" {
				t.Fatalf("round %d, version %d: %s", round, o.version, diff)
			}
		}
		h.finish()
	}
}

// TestTombstonesAreForgottenBelowLaterVersions is the same for folds that forget any tombstone they may. No copy is
// restored and no base state comes: what was merged with a tombstone could later be merged again without it.
func TestTombstonesAreForgottenBelowLaterVersions(t *testing.T) {
	for round := range ledgertest.Sample(12, 6, 2) {
		h := newHistory(t, uint64(1000+round), 1)
		h.forgets = true
		for range 60 {
			h.step()
			h.check(h.held())
		}
		for v := h.model.folded; v <= h.model.newest; v++ {
			h.check(v)
		}
		h.finish()
	}
}

const testGroups = 5

func program(n int) ledger.Pubkey {
	if n < 2 {
		return []ledger.Pubkey{ledger.SystemProgram, ledger.TokenProgram}[n]
	}
	return near(2, n)
}

func wallet(n int) ledger.Pubkey { return near(3, n) }

// near returns keys of which the first half of the prefix, or all of it, is the same.
func near(first byte, n int) ledger.Pubkey {
	k := ledger.Pubkey{first, 31: byte(n)}
	k[6] = byte(n % 2)
	return k
}

// testKey returns the keys of a history: some with the same prefix, then others.
func testKey(n int) ledger.Pubkey {
	if n < 10 {
		return near(9, n)
	}
	return key(n)
}

// op is one thing that was done to a node, to be done to another.
type op struct {
	version   ledger.Version // 0: a fold
	do        func(*node) *Applied
	got, want *Applied
}

// history does random things to a node and to a model.
type history struct {
	t       *testing.T
	r       *rand.Rand
	keys    int
	groups  int  // of testGroups, so many are used
	forgets bool // folds forget tombstones that versions above still have
	node    *node
	model   *model
	walkers sync.WaitGroup // of frozen copies
	ops     []op
	slot    ledger.Slot
	chain   []chained
	finals  int // of the chain, so many blocks are final
}

// chained is a block on the chain and the version it was applied as.
type chained struct {
	version ledger.Version
	slot    ledger.Slot
}

// newHistory begins a history of running shards. The positions of their overlays soon wrap around.
func newHistory(t *testing.T, seed uint64, shards int) *history {
	h := &history{
		t: t, r: seeded(t, seed), keys: 30, groups: testGroups, model: newModel(),
	}
	if seed%10 == 0 {
		h.keys, h.groups = 2*pageKeys+100, 2 // lists of several pages, and jobs of several slices
	}
	if seed%4 == 1 {
		h.model.filter = ledger.NewFilter([]ledger.Pubkey{ledger.TokenProgram}, []ledger.Pubkey{testKey(0)})
	}
	h.node = newNode(t, shards, h.model.filter, seed%3 != 2)
	for _, s := range h.node.shards {
		s.state.accounts.overlay.cells.next = math.MaxUint32 - position(h.r.IntN(300))
		s.state.accounts.overlay.tokens.next = math.MaxUint32 - position(h.r.IntN(100))
		s.state.accounts.overlay.data.next = math.MaxUint32 - position(h.r.IntN(100))
	}
	h.node.run()
	for range h.r.IntN(3) {
		h.base(true)
	}
	h.block()
	h.finals = 1
	return h
}

func (h *history) final() chained { return h.chain[h.finals-1] }

// held returns a version that is not folded.
func (h *history) held() ledger.Version {
	m := h.model
	return m.folded + ledger.Version(h.r.IntN(int(m.newest-m.folded)+1))
}

func (h *history) step() {
	switch n := h.r.IntN(22); {
	case n < 12:
		h.block()
	case n < 14 && !h.forgets:
		h.base(false)
	case n < 16 && h.finals < len(h.chain) && h.model.filter == nil: // the model does not know what was forgotten
		h.rollback()
	case n < 18:
		h.finals += h.r.IntN(len(h.chain) - h.finals + 1)
	case n < 20:
		h.fold()
	default:
		h.freeze()
	}
}

func (h *history) did(v ledger.Version, want *Applied, do func(*node) *Applied) {
	h.t.Helper()
	o := op{v, do, do(h.node), want}
	h.ops = append(h.ops, o)
	if diff := differentlyApplied(o.got, want); diff != "" {
		h.t.Fatalf("version %d was applied otherwise: %s", v, diff)
	}
}

func (h *history) base(direct bool) {
	base := &ledger.BaseState{Slot: ledger.Slot(h.r.IntN(int(h.slot) + 4))}
	base.Accounts, base.Mints = h.writes(h.keys/2), h.mints()
	v := h.model.newest + 1
	h.did(v, h.model.base(v, base, direct), func(n *node) *Applied {
		return n.each(func(s *Shard) *Task { return s.ApplyBase(Point{Version: v}, base, direct) })
	})
}

func (h *history) block() {
	h.slot += ledger.Slot(1 + h.r.IntN(2))
	b := &ledger.Block{Slot: h.slot, Accounts: h.writes(max(10, h.keys/3)), Mints: h.mints()}
	v := h.model.newest + 1
	h.chain = append(h.chain, chained{v, h.slot})
	h.did(v, h.model.block(v, b), func(n *node) *Applied {
		return h.notAsWritten(b, n.each(func(s *Shard) *Task { return s.ApplyBlock(Point{Version: v}, b) }))
	})
}

// notAsWritten returns what a block changed without saying which updates are as its writes, after checking that they are.
func (h *history) notAsWritten(b *ledger.Block, got *Applied) *Applied {
	for i := range got.Updates {
		u := &got.Updates[i]
		if u.Written == 0 {
			continue
		}
		want := b.Accounts[u.Written-1].AsWritten(ledger.BlockProvenance(b.Slot), u.Account.Since)
		if got, want := codec.AppendAccount(nil, &u.Account), codec.AppendAccount(nil, &want); !bytes.Equal(got, want) {
			h.t.Errorf("an update that is as write %d is %x, want %x", u.Written-1, got, want)
		}
		u.Written = 0
	}
	return got
}

func (h *history) rollback() {
	to := h.finals + h.r.IntN(len(h.chain)-h.finals)
	first := h.chain[to].version
	h.chain = h.chain[:to]
	v := h.model.newest + 1
	h.did(v, h.model.rollback(v, first), func(n *node) *Applied {
		return n.each(func(s *Shard) *Task { return s.Rollback(Point{Version: v}, first) })
	})
}

// fold folds up to a final block and forgets tombstones of before one. Where tombstones that versions above have are forgotten, it leaves
// versions above, and forgets all that it may.
func (h *history) fold() {
	n := h.r.IntN(h.finals)
	if h.forgets {
		n = h.finals
	} else if h.r.IntN(2) == 0 {
		h.finals = len(h.chain)
	}
	to, below := h.final().version, ledger.Slot(0)
	if n > 0 && (h.forgets || to == h.model.newest) {
		below = h.chain[n-1].slot
	}
	h.foldTo(to, below)
}

func (h *history) foldTo(to ledger.Version, below ledger.Slot) {
	h.model.fold(to, below)
	h.did(0, new(Applied), func(n *node) *Applied {
		for _, s := range n.shards {
			s.Fold(to, below)
			if below > 0 { // reads may come before tombstones are forgotten
				wait(h.t, s.Freeze(to)).Release()
			}
		}
		return new(Applied)
	})
}

// freeze freezes the shards and has the copies walked while the history goes on.
func (h *history) freeze() {
	v := h.held()
	frozen := h.node.freeze(v)
	want := h.model.versions[v]
	h.walkers.Go(func() {
		for range 3 {
			h.node.checkFrozen(frozen, want)
		}
		ReleaseAll(frozen)
	})
}

// check compares all answers at a version, and that there are none at folded ones.
func (h *history) check(v ledger.Version) {
	h.t.Helper()
	h.compare(h.node, v, h.model.versions[v])
	if folded, s := h.model.folded-1, h.node.shards[0]; h.model.folded > 0 {
		_, _, err := s.Account(ledger.Pubkey{}, folded, soon())
		_, listErr := s.List(Members{}, ledger.Opt[ledger.Pubkey]{}, 10, folded, soon(), nil)
		_, freezeErr := s.Freeze(folded).Wait()
		if err != ErrFolded || listErr != ErrFolded || !errors.Is(freezeErr, ErrFolded) {
			h.t.Fatalf("version %d: %v, %v, %v, want that it is folded", folded, err, listErr, freezeErr)
		}
	}
}

func (h *history) compare(n *node, v ledger.Version, want *plain) {
	h.t.Helper()
	n.compare(h.r.Perm(h.keys)[:30], v, 1+h.r.IntN(2*pageKeys), want)
	if got, want := n.counted(), want.counted(); v == h.model.newest && got != want {
		h.t.Fatalf("version %d: %d accounts are counted, want %d", v, got, want)
	}
}

// finish folds all, forgets all tombstones and checks that nothing is left but the newest version.
func (h *history) finish() {
	h.t.Helper()
	v := h.model.newest
	h.foldTo(v, math.MaxInt64)
	h.check(v)
	h.walkers.Wait()
	want := h.model.versions[v]
	accounts, mints := 0, 0
	for _, s := range h.node.shards {
		st := s.state // nothing is under way
		o := st.accounts.overlay
		heads := 0
		for n := range uint32(256) {
			heads += o.heads.Part(n << 24).Used
		}
		left := [...]int{
			o.Len(), heads, o.tokens.count, o.fieldProvenances.count, o.data.count, o.dataBytes, st.accounts.index.tree.Len(),
			len(st.mints.recent), st.accounts.base.Closed(), len(st.bases), int(s.Counters().OverlayCells.Load()),
		}
		if left != [len(left)]int{} {
			h.t.Fatalf("left are (values, heads, tokens, provenances, data, its bytes and index entries of the overlay, mints, tombstones, "+
				"base states, cells) %d", left)
		}
		if len(o.cells.chunks) > 1 || o.cells.holds(o.cells.oldest) {
			h.t.Fatalf("the empty overlay has %d chunks", len(o.cells.chunks))
		}
		accounts += st.accounts.base.Len()
		mints += st.mints.tree.Len()
	}
	ledgertest.Equal(h.t, [2]int{accounts, mints}, [2]int{len(want.accounts), len(want.mints)}, "accounts and mints of the base")
}

func (h *history) writes(most int) (all []ledger.AccountWrite) {
	for range h.r.IntN(most + 1) {
		w := ledger.AccountWrite{
			Pubkey: testKey(h.r.IntN(h.keys)), Lamports: ledger.Lamports(h.r.IntN(4)), Owner: program(h.r.IntN(h.groups)),
			Known: ledger.FieldsAll, RentEpoch: uint64(h.r.IntN(2)),
		}
		if h.r.IntN(4) == 0 {
			w.Known = ledger.Fields(h.r.IntN(int(ledger.FieldsAll) + 1))
		}
		switch h.r.IntN(4) {
		case 0, 1:
			w.Owner = ledger.TokenProgram
			mint, owner := testKey(h.r.IntN(3)), wallet(h.r.IntN(h.groups))
			w.Token = &ledger.TokenAccount{Mint: mint, Owner: owner, Amount: uint64(h.r.IntN(3))}
			if h.r.IntN(2) == 0 {
				w.Token.Details.Known = true
				w.Token.Details.Value.Delegate = ledger.Opt[ledger.Pubkey]{Known: h.r.IntN(3) > 0, Value: wallet(h.r.IntN(h.groups))}
			}
		case 2:
			w.Mint = &ledger.Mint{Decimals: 2, Supply: ledger.Some(uint64(h.r.IntN(9)))}
		}
		if h.r.IntN(2) == 0 {
			w.Known |= ledger.FieldOwner | ledger.FieldData
			w.Data = ledger.NewData(make([]byte, h.r.IntN(3)))
		}
		all = append(all, w)
	}
	return all
}

func (h *history) mints() (all []ledger.MintWrite) {
	for range h.r.IntN(h.keys / 10) {
		all = append(all, ledger.MintWrite{Pubkey: testKey(h.r.IntN(h.keys)), Mint: ledger.Mint{Decimals: 2}})
	}
	return all
}
