package shard

import (
	"math"
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
			if got := a.read(&hot.Pubkey, at, new(ledger.Account), &a.slab); got.Lamports != ledger.Lamports(at) {
				t.Fatalf("version %d of %d: %+v", at, v, got)
			}
		}
		longest := 0
		for p, steps := a.overlay.find(&hot.Pubkey).head, 0; a.overlay.written.holds(p); steps++ {
			w := a.overlay.written.at(p)
			if p = w.jump; !a.overlay.written.holds(p) {
				p = w.older
			}
			longest = steps
		}
		if longest > 40 {
			t.Fatalf("the oldest of %d values is found after %d jumps", v, longest)
		}
		for a.fold(v-300, sliceKeys, func(*ledger.Account) {}) {
		}
	}
}

// token returns a token account of a key.
func token(n int) ledger.Account {
	return ledger.Account{
		Pubkey: key(n), Lamports: 1, Known: ledger.FieldsShown | ledger.FieldToken, Owner: ledger.TokenProgram,
		Token: &ledger.TokenAccount{Mint: key(-1), Owner: key(-2), Amount: 3},
	}
}

// TestKeysAreFoundTogetherAsAlone looks keys up together that only the base has, only the overlay, both, or neither, beside
// one whose hash leads to another's value first.
func TestKeysAreFoundTogetherAsAlone(t *testing.T) {
	const keys = 3000
	a := newAccounts()
	for n := range keys {
		x := token(n)
		if n%3 == 0 {
			a.base.Put(0, &x)
		}
		if n%3 == 1 || n%9 == 0 {
			a.write(a.find(&x.Pubkey), 2, &x.Pubkey, nil, &x)
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
	for from := 0; from < keys; from += sliceKeys {
		var writes []ledger.AccountWrite
		var todo []keyedWrite
		for n := from; n < min(from+sliceKeys, keys); n++ {
			writes = append(writes, lamports(key(n), 1))
			todo = append(todo, keyedWrite{at: len(writes) - 1})
		}
		var all prefetch
		all.gather(writes, todo)
		a.findAll(&all)
		for i := range writes {
			if got, want := all.take(), a.find(&writes[i].Pubkey); got != want {
				t.Errorf("key %d: found with others at %+v, alone at %+v", from+i, got, want)
			}
		}
	}
}

// TestKeyIsWrittenWhereItWas writes a key where it was found before others were written, for which the tables had to grow.
func TestKeyIsWrittenWhereItWas(t *testing.T) {
	a := newAccounts()
	x := token(0)
	a.write(a.find(&x.Pubkey), 1, &x.Pubkey, nil, &x)
	at := a.find(&x.Pubkey)
	for n := 1; n < 50_000; n++ {
		other := token(n)
		a.write(a.find(&other.Pubkey), 2, &other.Pubkey, nil, &other)
	}
	x.Lamports = 7
	a.write(at, 2, &x.Pubkey, &x, &x)
	for v, want := range map[ledger.Version]ledger.Lamports{1: 1, 2: 7} {
		if got := a.read(&x.Pubkey, v, new(ledger.Account), &a.slab); got.Lamports != want {
			t.Errorf("version %d: %+v, want %d lamports", v, got, want)
		}
	}
}
