package shard

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"weak"

	"ledgerd/engine/ledger"
)

// plainMints is what mints should hold, as one map for each version.
type plainMints struct {
	versions       map[ledger.Version]map[ledger.Pubkey]ledger.Mint
	newest, folded ledger.Version
}

// next begins a version that stands as the newest does.
func (p *plainMints) next() map[ledger.Pubkey]ledger.Mint {
	now := make(map[ledger.Pubkey]ledger.Mint)
	for k, v := range p.versions[p.newest] {
		now[k] = v
	}
	p.newest++
	p.versions[p.newest] = now
	return now
}

const plainMintKeys = 30

// TestMintsEqualPlainMaps writes, restores and folds at random and reads every version held, and a frozen one.
func TestMintsEqualPlainMaps(t *testing.T) {
	r := seeded(t, 1)
	for round := range 40 {
		m := newMints()
		p := &plainMints{versions: map[ledger.Version]map[ledger.Pubkey]ledger.Mint{0: {}}}
		for n := range r.IntN(plainMintKeys) { // known before anybody reads, some of them twice
			k, mint := near(9, n/2), ledger.Mint{Decimals: uint8(r.IntN(9))}
			m.putBase(k, &mint)
			if p.versions[0][k] = mint; r.IntN(4) == 0 {
				m.putBase(k, nil)
				delete(p.versions[0], k)
			}
		}
		frozen, frozenAt := m.freeze(), ledger.Version(0)
		for range 60 {
			switch n := r.IntN(11); {
			case n < 7:
				p.write(r, m)
			case n < 8 && p.newest > p.folded+1:
				p.restore(r, m)
			case n < 9:
				frozen, frozenAt = m.freeze(), p.folded
			case p.newest > p.folded:
				p.fold(t, r, m)
			}
			for v := p.folded; v <= p.newest; v++ {
				p.check(t, r, m, v)
			}
			p.check(t, r, frozen, frozenAt)
			if t.Failed() {
				t.Fatalf("round %d", round)
			}
		}
		for m.fold(p.newest, 1) {
		}
		if want := len(p.versions[p.newest]); m.tree.Len() != want || len(m.written) != 0 {
			t.Fatalf("round %d: %d values are listed of %d mints after all was folded", round, m.tree.Len(), want)
		}
	}
}

func (p *plainMints) write(r *rand.Rand, m *mints) {
	now := p.next()
	for range r.IntN(8) {
		k := near(9, r.IntN(plainMintKeys))
		if r.IntN(4) == 0 {
			delete(now, k)
			m.put(p.newest, k, nil)
			continue
		}
		mint := ledger.Mint{Decimals: uint8(r.IntN(256))}
		now[k] = mint
		m.put(p.newest, k, &mint)
	}
}

// restore puts back what stood before some version, as a new version.
func (p *plainMints) restore(r *rand.Rand, m *mints) {
	first := p.folded + 1 + ledger.Version(r.IntN(int(p.newest-p.folded)))
	keys := m.writtenSince(first)
	before := p.versions[first-1]
	p.newest++
	p.versions[p.newest] = before
	for _, k := range keys {
		m.put(p.newest, k, m.at(&k, first-1))
	}
}

// fold folds some versions, a few keys at a time, and reads in between.
func (p *plainMints) fold(t *testing.T, r *rand.Rand, m *mints) {
	p.folded += 1 + ledger.Version(r.IntN(int(p.newest-p.folded)))
	for m.fold(p.folded, 1+r.IntN(4)) {
		p.check(t, r, m, p.folded)
		p.check(t, r, m, p.newest)
	}
}

func (p *plainMints) check(t *testing.T, r *rand.Rand, m *mints, v ledger.Version) {
	t.Helper()
	want := p.versions[v]
	var keys []ledger.Pubkey
	from, limit := near(9, r.IntN(plainMintKeys)), r.IntN(plainMintKeys)
	for n := range plainMintKeys {
		k := near(9, n)
		mint, held := want[k]
		if m.first != nil { // a frozen copy is only walked
			if got := m.at(&k, v); held != (got != nil) || held && *got != mint {
				t.Errorf("version %d: key %d is %+v, want %+v (held %v)", v, n, got, mint, held)
			}
		}
		if held && k.Compare(&from) >= 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b ledger.Pubkey) int { return a.Compare(&b) })
	var got []ledger.Pubkey
	m.ascend(&from, v, func(f *mintFacts) bool {
		if len(got) == limit {
			return false
		}
		if f.mint != want[f.pubkey] {
			t.Errorf("version %d: %s is visited with %+v, want %+v", v, f.pubkey, f.mint, want[f.pubkey])
		}
		got = append(got, f.pubkey)
		return true
	})
	if keys = keys[:min(limit, len(keys))]; !slices.Equal(got, keys) {
		t.Errorf("version %d: ascending from %s up to %d: %v, want %v", v, from, limit, got, keys)
	}
}

// TestFoldedMintsAreLetGo writes mints again and again and counts folded values that something still points at.
func TestFoldedMintsAreLetGo(t *testing.T) {
	const window, rounds = 24_000, 100
	r := rand.New(rand.NewPCG(1, 2))
	s := newState(0, 1)
	var held []*mintFacts
	var deleted []weak.Pointer[mintFacts]
	v := ledger.Version(0)
	for range rounds {
		v++
		for range window / 16 {
			s.mints.put(v, key(int(r.Uint32())), new(ledger.Mint))
			held = append(held, s.mints.written[len(s.mints.written)-1])
		}
		for len(held) > window {
			s.mints.put(v, held[0].pubkey, nil)
			deleted = append(deleted, weak.Make(held[0]))
			held[0] = nil
			held = held[1:]
		}
		for s.mints.fold(v, len(held)) {
		}
		s.shed()
	}
	runtime.GC()
	alive := 0
	for _, w := range deleted {
		if w.Value() != nil {
			alive++
		}
	}
	// Without shedding there are dozens.
	if alive > 8 {
		t.Errorf("%d of %d deleted values live on beside %d held ones", alive, len(deleted), len(held))
	}
	runtime.KeepAlive(s)
}
