package shard

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
)

// TestQueueGoesRound adds and drops values around the end of the positions, so that the ring
// grows at every turn of it, and reads them all and in a copy.
func TestQueueGoesRound(t *testing.T) {
	for _, before := range []uint32{1, queueChunk, queueChunk + 1, 3*queueChunk + 7, 20 * queueChunk} {
		q := queue[int]{next: math.MaxUint32 - before + 1}
		r := seeded(t, uint64(before))
		var want []int
		var at []position
		for n := range 40 * queueChunk {
			p, value := q.add()
			if *value != 0 || p == 0 {
				t.Fatalf("value %d is not new: %d at %d", n, *value, p)
			}
			*value = n + 1
			want, at = append(want, n+1), append(at, p)
			for r.IntN(100) < 45+n/queueChunk%10 && len(want) > 0 {
				q.drop()
				if q.holds(at[0]) {
					t.Fatalf("position %d is held after it was dropped", at[0])
				}
				want, at = want[1:], at[1:]
			}
			if n%queueChunk != 0 {
				continue
			}
			frozen := q.freeze()
			for i := range want {
				if got := *frozen.at(at[i]); got != want[i] || !q.holds(at[i]) || q.nth(i) != at[i] {
					t.Fatalf("value %d of %d, at %d: %d, want %d", i, len(want), at[i], got, want[i])
				}
			}
		}
		for range want {
			q.drop()
		}
		kept := slices.DeleteFunc(q.chunks, func(c *[queueChunk]int) bool { return c == nil })
		if q.count != 0 || len(kept) > 1 || q.holds(q.oldest) {
			t.Errorf("%d values and %d chunks are held by an empty queue", q.count, len(kept))
		}
	}
}

// TestOftenWrittenAccountIsFoundAtEveryVersion writes one account in every version, next to
// others, and reads it at all that are held while the oldest are folded.
func TestOftenWrittenAccountIsFoundAtEveryVersion(t *testing.T) {
	a := newAccounts()
	a.overlay.written.next = math.MaxUint32 - 3000
	hot, newestV, folded := key(0), ledger.Version(2500), ledger.Version(0)
	for v := ledger.Version(1); v <= newestV; v++ {
		for _, k := range []ledger.Pubkey{hot, key(int(v))} {
			after := &ledger.Account{Pubkey: k, Lamports: ledger.Lamports(v)}
			a.write(a.find(&k), v, &k, nil, after)
		}
		if v%500 != 0 {
			continue
		}
		for at := folded; at <= v; at++ {
			got := a.read(&hot, at, new(ledger.Account))
			if at == 0 && got != nil || at > 0 && (got == nil || got.Lamports != ledger.Lamports(at)) {
				t.Fatalf("version %d of %d: %+v", at, v, got)
			}
			steps := 0
			for p := a.overlay.find(&hot).head; a.overlay.written.holds(p); steps++ {
				w := a.overlay.written.at(p)
				if w.version <= at {
					break
				}
				if p = w.older; a.overlay.written.holds(w.jump) && a.overlay.written.at(w.jump).version > at {
					p = w.jump
				}
			}
			if steps > 80 {
				t.Fatalf("version %d of %d is found after %d steps", at, v, steps)
			}
		}
		folded = v - 300
		for a.fold(folded, sliceKeys, func(*ledger.Account) {}) {
		}
	}
}

// TestUpdateOwnsItsTokenFacts writes lamports alone to token accounts, of the base and of the overlay,
// and looks at the updates after more was written and folded.
func TestUpdateOwnsItsTokenFacts(t *testing.T) {
	const n = 10
	s := start(t)
	var whole, partial []ledger.AccountWrite
	for i := range n {
		w := owned(key(i), 1, ledger.TokenProgram)
		w.Token = &ledger.TokenAccount{Mint: key(100), Owner: key(i), Amount: 5}
		whole = append(whole, w)
		partial = append(partial, ledger.AccountWrite{Pubkey: key(i), Lamports: 2})
	}
	applyBlock(t, s, 1, whole...)
	s.Fold(1, 0)
	all := applyBlock(t, s, 2, partial...).Updates
	for i := range partial {
		partial[i].Lamports = 3
	}
	all = append(all, applyBlock(t, s, 3, partial...).Updates...)
	s.Fold(3, 0)
	settle(t, s, 4)
	for i := range all {
		if a := &all[i].Account; a.Token == nil || a.Token.Owner != a.Pubkey || a.Token.Amount != 5 {
			t.Errorf("update %d of %s has token facts %+v", i, a.Pubkey, a.Token)
		}
	}
	if len(all) != 2*n {
		t.Errorf("%d updates, want %d", len(all), 2*n)
	}
}

// plainAccounts is what accounts should hold, as one map for each version.
type plainAccounts struct {
	versions       map[ledger.Version]map[ledger.Pubkey]*ledger.Account
	newest, folded ledger.Version
}

const plainKeys = 40

func plainKey(n int) ledger.Pubkey { return near(9, n) }

// TestAccountsEqualPlainMaps writes, folds, forgets and freezes at random and reads every version
// held in every way there is.
func TestAccountsEqualPlainMaps(t *testing.T) {
	r := seeded(t, 1)
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	for round := range rounds {
		a := newAccounts()
		a.overlay.written.next = math.MaxUint32 - uint32(r.IntN(300))
		a.overlay.tokens.next = math.MaxUint32 - uint32(r.IntN(100))
		p := &plainAccounts{versions: map[ledger.Version]map[ledger.Pubkey]*ledger.Account{0: {}}}
		var frozen *Frozen
		var then map[ledger.Pubkey]*ledger.Account
		for range 80 {
			switch n := r.IntN(12); {
			case n < 7:
				p.write(r, a)
			case n < 9:
				p.fold(a, p.folded+ledger.Version(r.IntN(int(p.newest-p.folded)+1)))
			case n < 10:
				p.forget(r, a)
			case frozen != nil:
				checkWalk(t, frozen.Accounts, then)
				frozen.Release()
				frozen = nil
			default:
				v := p.folded + ledger.Version(r.IntN(int(p.newest-p.folded)+1))
				frozen = &Frozen{version: v, over: a.overlay.freeze(), base: a.base.Freeze()}
				then = maps.Clone(p.versions[v])
			}
			for v := p.folded; v <= p.newest; v++ {
				p.check(t, r, a, v)
			}
			if t.Failed() {
				t.Fatalf("round %d", round)
			}
		}
		p.fold(a, p.newest)
		if p.check(t, r, a, p.newest); t.Failed() {
			t.Fatalf("round %d", round)
		}
		left := [...]int{a.overlay.Len(), a.overlay.heads.Len(), a.overlayOnly.Len(), a.programs.tree.Len(), a.holders.tree.Len(), int(a.overlay.tokens.count), int(a.overlay.fieldProvenances.count)}
		if left != [...]int{0, 0, 0, 0, 0, 0, 0} {
			t.Fatalf("round %d: values, heads, keys of the overlay alone, index entries, tokens and teachers left of the overlay: %d", round, left)
		}
	}
}

// write makes a new version with some keys changed.
func (p *plainAccounts) write(r *rand.Rand, a *accounts) {
	now := make(map[ledger.Pubkey]*ledger.Account)
	for k, v := range p.versions[p.newest] {
		now[k] = v
	}
	p.newest++
	for n := range plainKeys {
		if r.IntN(3) > 0 {
			continue
		}
		k := plainKey(n)
		at := a.find(&k)
		before, after := a.newest(at, new(ledger.Account)), (*ledger.Account)(nil)
		if r.IntN(4) > 0 {
			after = &ledger.Account{Pubkey: k, Lamports: ledger.Lamports(r.IntN(4)), Provenance: ledger.Provenance(p.newest)}
		} else if before == nil {
			continue
		}
		switch {
		case after == nil:
		case after.Lamports == 0:
			after.Since = ledger.BlockProvenance(ledger.Slot(p.newest))
		default:
			after.Owner, after.Known = program(r.IntN(3)), ledger.FieldOwner
			if r.IntN(2) == 0 {
				after.Token = &ledger.TokenAccount{Owner: wallet(r.IntN(3)), Amount: uint64(p.newest)}
			}
			if r.IntN(4) == 0 {
				after.FieldProvenance = &ledger.FieldProvenance{ledger.Provenance(p.newest)}
			}
		}
		a.write(at, p.newest, &k, before, after)
		if now[k] = after; after == nil {
			delete(now, k)
		}
	}
	p.versions[p.newest] = now
}

func (p *plainAccounts) fold(a *accounts, to ledger.Version) {
	for a.fold(to, 7, func(*ledger.Account) {}) {
	}
	for ; p.folded < to; p.folded++ {
		delete(p.versions, p.folded)
	}
}

// forget forgets a tombstone of the base, which others may have been written upon.
func (p *plainAccounts) forget(r *rand.Rand, a *accounts) {
	k := plainKey(r.IntN(plainKeys))
	dead := p.versions[p.folded][k]
	if dead == nil || dead.Exists() {
		return
	}
	a.forget(&k)
	for v := p.folded; v <= p.newest && p.versions[v][k] == dead; v++ {
		delete(p.versions[v], k)
	}
}

// check compares what is read at one version.
func (p *plainAccounts) check(t *testing.T, r *rand.Rand, a *accounts, v ledger.Version) {
	t.Helper()
	want := p.versions[v]
	from := plainKey(r.IntN(plainKeys))
	past := make(map[ledger.Pubkey]*ledger.Account)
	for n := range plainKeys {
		k := plainKey(n)
		got := a.read(&k, v, new(ledger.Account))
		if (got == nil) != (want[k] == nil) || got != nil && !same(got, want[k]) {
			t.Errorf("version %d of %d to %d: read %+v, want %+v", v, p.folded, p.newest, got, want[k])
		}
		if want[k] != nil && k.Compare(&from) >= 0 {
			past[k] = want[k]
		}
	}
	checkWalk(t, func(visit func(*ledger.Account) bool) { a.ascend(&from, v, visit) }, past)
	for n := range 3 {
		for _, m := range []Members{{Group: program(n)}, {Group: wallet(n), ByWallet: true}} {
			p.checkMembers(t, a, m, v)
		}
	}
}

func (p *plainAccounts) checkMembers(t *testing.T, a *accounts, m Members, v ledger.Version) {
	t.Helper()
	want := make(map[ledger.Pubkey]*ledger.Account)
	for k, x := range p.versions[v] {
		of := grouping(byProgram)
		if m.ByWallet {
			of = byWallet
		}
		if group, ok := of(x); ok && group == m.Group {
			want[k] = x
		}
	}
	checkWalk(t, func(visit func(*ledger.Account) bool) {
		var page Page
		for !page.Done {
			a.members(&page, m, page.Next, 3, v)
		}
		for i := range page.Accounts {
			visit(&page.Accounts[i])
		}
	}, want)
}

// checkWalk checks that a walk visits the wanted accounts in key order.
func checkWalk(t *testing.T, walk func(func(*ledger.Account) bool), want map[ledger.Pubkey]*ledger.Account) {
	t.Helper()
	n := 0
	var last ledger.Pubkey
	walk(func(a *ledger.Account) bool {
		if w := want[a.Pubkey]; w == nil || !same(a, w) || n > 0 && a.Pubkey.Compare(&last) <= 0 {
			t.Errorf("visited %+v after %s, want %+v", a, last, w)
		}
		n, last = n+1, a.Pubkey
		return true
	})
	if n != len(want) {
		t.Errorf("visited %d accounts, want %d", n, len(want))
	}
}
