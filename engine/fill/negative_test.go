package fill

import (
	"math/rand/v2"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

func key(n int) ledger.Pubkey {
	return ledger.Pubkey{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
}

func TestNegativeCacheIsBoundedAndExpires(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var a negativeCache
		r := rand.New(rand.NewPCG(1, 1))
		for range 3 * maxNegative {
			a.add(key(r.IntN(2*maxNegative)), absence{since: 7}, time.Now())
			if len(a.order) > maxNegative || len(a.keys) > len(a.order) {
				t.Fatalf("%d keys, %d in order, at most %d are remembered", len(a.keys), len(a.order), maxNegative)
			}
		}
		a.add(key(-1), absence{since: 8}, time.Now())
		a.add(key(-2), absence{since: 8}, time.Now())
		a.forgetAlive([]ledger.AccountWrite{{Pubkey: key(-2), Lamports: 1}, {Pubkey: key(-1)}})
		if _, ok := a.find(key(-2), time.Now()); ok {
			t.Error("a key that a block made is still remembered as missing")
		}
		time.Sleep(NegativeFor - 1)
		if k, ok := a.find(key(-1), time.Now()); !ok || k.since != 8 {
			t.Errorf("remembered as of %d, %v", k.since, ok)
		}
		time.Sleep(time.Nanosecond)
		if _, ok := a.find(key(-1), time.Now()); ok {
			t.Error("a key is remembered for too long")
		}
		a.add(key(-3), absence{since: 9}, time.Now())
		if len(a.keys) != 1 || len(a.order) != 1 {
			t.Errorf("%d keys and %d in order are left of what expired", len(a.keys), len(a.order))
		}
	})
}
