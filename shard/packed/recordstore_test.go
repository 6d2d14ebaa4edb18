package packed

import (
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// key returns the n-th key of a test. A quarter of the keys have one of two prefixes.
func key(n int) ledger.Pubkey {
	k := ledgertest.Key(n)
	if n%4 == 0 {
		copy(k[:8], []byte{7, 7, 7, 7, 7, 7, 7, byte(n / 4 % 2)})
	}
	return k
}

// oneOf makes each of the values often, and any other.
func oneOf[T any](any *rapid.Generator[T], values ...T) *rapid.Generator[any] {
	special := rapid.SampledFrom(values)
	return rapid.OneOf(special, special, any).AsAny()
}

// accounts makes accounts of which everything that can be said may be said. Few keys are named.
var accounts = rapid.MakeCustom[ledger.Account](rapid.MakeConfig{
	Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[ledger.Pubkey]():     oneOf(rapid.Map(rapid.IntRange(0, 19), key), ledger.Pubkey{}, key(1), key(2), key(3)),
		reflect.TypeFor[ledger.Provenance](): oneOf(rapid.Make[ledger.Provenance](), 0, 0, 0, 1, 1<<48-1, 1<<48, math.MaxUint64),
		reflect.TypeFor[ledger.Fields]():     oneOf(rapid.Make[ledger.Fields](), 0, ledger.FieldOwner, ledger.FieldToken, ledger.FieldsAll, ledger.FieldsAll|ledger.FieldData),
		reflect.TypeFor[ledger.Data]():       rapid.SampledFrom([]ledger.Data{{}, ledger.NewData([]byte{1}), ledger.NewData(make([]byte, 300))}).AsAny(),
		reflect.TypeFor[ledger.TokenState](): oneOf(rapid.Make[ledger.TokenState](), ledger.TokenInitialized, ledger.TokenFrozen),
	},
	Kinds: map[reflect.Kind]*rapid.Generator[any]{
		reflect.Uint64: oneOf(rapid.Uint64(), 0, 0, 1, 361, math.MaxUint64-1, math.MaxUint64, math.MaxUint64),
	},
})

// made are accounts to choose from, as making one takes long. Half of the holdings say no more than most do.
var made = sync.OnceValue(func() []ledger.Account {
	all := make([]ledger.Account, 3000)
	for n := range all {
		if all[n] = accounts.Example(n); all[n].Token != nil && n%2 == 0 {
			all[n].Token.Details.Value = ledger.TokenDetails{State: ledger.TokenState(n % 7)}
		}
	}
	return all
})

// anyAccount returns an account of any of a thousand keys.
func anyAccount(r *rand.Rand) *ledger.Account {
	a := made()[r.IntN(len(made()))]
	a.Pubkey = key(r.IntN(1000))
	return &a
}

// TestSizesOfRecords holds the sizes that the memory for each account depends on.
func TestSizesOfRecords(t *testing.T) {
	sizes := [...]uintptr{
		reflect.TypeFor[record]().Size(), reflect.TypeFor[holding]().Size(), reflect.TypeFor[extra]().Size(), reflect.TypeFor[listing]().Size(),
		reflect.TypeFor[datum]().Size(),
	}
	ledgertest.Equal(t, sizes, [...]uintptr{56, 48, 72, 12, 24}, "bytes of a record, a holding, an extra, a listing and a datum")
}
