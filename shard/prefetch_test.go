package shard

import (
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/shard/arena"
)

// TestLookingAheadFindsTheSame looks keys up together that only the base has, only the overlay,
// both, or neither, beside one whose hash leads to another's value first.
func TestLookingAheadFindsTheSame(t *testing.T) {
	const keys = 3000
	a := newAccounts()
	for n := range keys {
		x := account(n, n%4 == 1)
		switch {
		case n%3 == 0:
			a.base.Put(0, &x)
		case n%3 == 1:
			a.write(a.find(&x.Pubkey), 2, &x.Pubkey, nil, &x)
		}
		if n%9 == 0 {
			a.write(a.find(&x.Pubkey), 2, &x.Pubkey, nil, &x)
		}
	}
	for n := 0; n < keys; n += 100 {
		collide(a.overlay, key(n), a.overlay.written.oldest)
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

// account returns an account of a key, which holds tokens or not.
func account(n int, tokens bool) ledger.Account {
	a := ledger.Account{Pubkey: key(n), Lamports: 1, Known: ledger.FieldsShown | ledger.FieldToken}
	if tokens {
		a.Owner = ledger.TokenProgram
		a.Token = &ledger.TokenAccount{Mint: key(-1), Owner: key(-2), Amount: 3}
	}
	return a
}

// collide makes the hash of a key lead to another's value too.
func collide(o *versions, k ledger.Pubkey, to position) {
	hash := arena.HashOf(&k)
	part := o.heads.Part(hash)
	part.Grow()
	at, mask := part.First(hash)
	for part.Entries[at] != 0 {
		at = (at + 1) & mask
	}
	part.Add(at, hash, uint32(to))
}

// TestAPlaceOutlivesOtherWrites writes a key where it was found before others were, for which the
// tables had to grow.
func TestAPlaceOutlivesOtherWrites(t *testing.T) {
	const keys = 50_000
	a := newAccounts()
	x := account(0, false)
	a.write(a.find(&x.Pubkey), 1, &x.Pubkey, nil, &x)
	at := a.find(&x.Pubkey)
	for n := 1; n < keys; n++ {
		other := account(n, false)
		a.write(a.find(&other.Pubkey), 2, &other.Pubkey, nil, &other)
	}
	after := x
	after.Lamports = 7
	a.write(at, 2, &x.Pubkey, &x, &after)
	var got ledger.Account
	if a.read(&x.Pubkey, 2, &got) == nil || got.Lamports != after.Lamports {
		t.Errorf("read %+v after the write, want %d lamports", got, after.Lamports)
	}
	if a.read(&x.Pubkey, 1, &got) == nil || got.Lamports != x.Lamports {
		t.Errorf("read %+v before the write, want %d lamports", got, x.Lamports)
	}
}
