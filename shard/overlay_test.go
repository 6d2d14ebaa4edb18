package shard

import (
	"math"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// TestQueueGoesRound adds and drops values around the end of the positions and reads them all and in a copy.
func TestQueueGoesRound(t *testing.T) {
	for _, before := range []position{1, queueChunk, queueChunk + 1, 3*queueChunk + 7, 20 * queueChunk} {
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
		if q.count != 0 || len(q.chunks) > 1 || q.holds(q.oldest) {
			t.Errorf("%d values and %d chunks are held by an empty queue", q.count, len(q.chunks))
		}
	}
}

// TestOftenWrittenAccountIsFoundInFewSteps writes one account in every version and follows jumps to all that are held while
// the oldest are folded.
func TestOftenWrittenAccountIsFoundInFewSteps(t *testing.T) {
	a := newAccounts()
	a.overlay.written.next = math.MaxUint32 - 1000
	hot := ledger.Account{Pubkey: key(0)}
	for v := ledger.Version(1); v <= 2500; v++ {
		hot.Lamports = ledger.Lamports(v)
		a.write(a.find(&hot.Pubkey), v, &hot.Pubkey, nil, &hot)
		if v%500 != 0 {
			continue
		}
		for at := v - 250; at <= v; at++ {
			wantLamports(t, a, hot.Pubkey, at, ledger.Lamports(at))
		}
		steps := 0
		for p := a.overlay.find(&hot.Pubkey).head; a.overlay.written.holds(p); steps++ {
			w := a.overlay.written.at(p)
			if p = w.jump; !a.overlay.written.holds(p) {
				p = w.older
			}
		}
		if steps > 40 {
			t.Fatalf("the oldest of %d values is found after %d jumps", v, steps)
		}
		for a.fold(v-300, sliceKeys, func(*ledger.Account) {}) {
		}
	}
}

func wantLamports(t *testing.T, a *accounts, key ledger.Pubkey, v ledger.Version, want ledger.Lamports) {
	t.Helper()
	if got := a.read(&key, v, new(ledger.Account), &a.slab); got.Lamports != want {
		t.Fatalf("version %d: %+v, want %d lamports", v, got, want)
	}
}

// put writes an account of a key as of a version.
func (t *accounts) put(n int, v ledger.Version) {
	x := ledger.Account{Pubkey: key(n), Lamports: 1, Known: ledger.FieldsShown, Owner: ledger.TokenProgram}
	t.write(t.find(&x.Pubkey), v, &x.Pubkey, nil, &x)
}

// TestKeysAreFoundTogetherAsAlone looks keys up together that only the base has, only the overlay, both, or neither, beside
// one whose hash leads to another's value first.
func TestKeysAreFoundTogetherAsAlone(t *testing.T) {
	const keys = 3000
	a := newAccounts()
	for n := range keys {
		if n%3 == 0 {
			a.base.Put(0, &ledger.Account{Pubkey: key(n), Lamports: 1})
		}
		if n%3 == 1 || n%9 == 0 {
			a.put(n, 2)
		}
	}
	for n := 0; n < keys; n += 100 { // the hash of a key leads to the oldest value too
		k := key(n)
		hash := arena.HashOf(&k)
		part := a.overlay.heads.Part(hash)
		part.Grow()
		at, mask := part.First(hash)
		for part.Entries[at] != 0 {
			at = (at + 1) & mask
		}
		part.Add(at, hash, uint32(a.overlay.written.oldest))
	}
	writes := lamportsOf(keys, 1)
	for some := range slices.Chunk(writes, sliceKeys) {
		var todo []keyedWrite
		for i := range some {
			todo = append(todo, keyedWrite{at: i})
		}
		var all prefetch
		all.gather(some, todo)
		a.findAll(&all)
		for i := range some {
			if got, want := all.take(), a.find(&some[i].Pubkey); got != want {
				t.Errorf("%s: found with others at %+v, alone at %+v", some[i].Pubkey, got, want)
			}
		}
	}
}

// TestKeyIsWrittenWhereItWas writes a key where it was found before others were written, for which the tables had to grow.
func TestKeyIsWrittenWhereItWas(t *testing.T) {
	a := newAccounts()
	a.put(0, 1)
	x := ledger.Account{Pubkey: key(0), Lamports: 7}
	at := a.find(&x.Pubkey)
	for n := 1; n < 50_000; n++ {
		a.put(n, 2)
	}
	a.write(at, 2, &x.Pubkey, nil, &x)
	wantLamports(t, a, x.Pubkey, 1, 1)
	wantLamports(t, a, x.Pubkey, 2, 7)
}
