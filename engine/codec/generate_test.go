package codec

import (
	"crypto/sha256"
	"math"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
)

func oneOf[T any](values ...T) *rapid.Generator[any] { return rapid.SampledFrom(values).AsAny() }

var key = rapid.Custom(func(t *rapid.T) [32]byte { return sha256.Sum256([]byte{rapid.Byte().Draw(t, "key")}) })

// values makes values by reflection.
var values = rapid.MakeConfig{Types: map[reflect.Type]*rapid.Generator[any]{
	reflect.TypeFor[ledger.Pubkey](): key.AsAny(),
	reflect.TypeFor[ledger.Hash]():   key.AsAny(),
	reflect.TypeFor[ledger.Signature](): rapid.Custom(func(t *rapid.T) ledger.Signature {
		a, b := key.Draw(t, "first half"), key.Draw(t, "second half")
		return ledger.Signature(slices.Concat(a[:], b[:]))
	}).AsAny(),
	reflect.TypeFor[ledger.Fields](): rapid.Custom(func(t *rapid.T) (known ledger.Fields) {
		for bit := range 8 {
			known |= ledger.Fields(rapid.IntRange(0, 1).Draw(t, "known")) << bit
		}
		return known
	}).AsAny(),
	reflect.TypeFor[ledger.Provenance](): oneOf[ledger.Provenance](0, 1, 1<<40, math.MaxUint64),
	reflect.TypeFor[ledger.Commitment](): oneOf(ledger.Processed, ledger.Confirmed, ledger.Finalized),
	reflect.TypeFor[ledger.TokenState](): oneOf(ledger.TokenUninitialized, ledger.TokenInitialized, ledger.TokenFrozen),
	reflect.TypeFor[ledger.Status]():     oneOf(ledger.StatusConfirmed, ledger.StatusFinalized, ledger.StatusDead),
	reflect.TypeFor[ledger.RecordKind](): oneOf(ledger.BlockRecord, ledger.RollbackRecord, ledger.StatusRecord, ledger.BaseRecord),
}}

// generate returns a value as sources and the sequencer make it.
func generate[T any](t *rapid.T) *T {
	v := rapid.MakeCustom[T](values).Draw(t, "value")
	settle(reflect.ValueOf(&v))
	return &v
}

func genEvent(t *rapid.T) ledger.Event {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return generate[ledger.Block](t)
	case 1:
		return generate[ledger.BaseState](t)
	}
	return generate[ledger.SlotStatus](t)
}

// settle makes zero what is unknown, and nil a list without items.
func settle(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			settle(v.Elem())
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
		}
		for i := range v.Len() {
			settle(v.Index(i))
		}
	case reflect.Struct:
		if known := v.FieldByName("Known"); known.Kind() == reflect.Bool && !known.Bool() {
			v.SetZero()
		}
		settleFields(v.Addr().Interface())
		for i := range v.NumField() {
			settle(v.Field(i))
		}
	}
}

// settleFields changes fields that depend on others.
func settleFields(v any) {
	switch v := v.(type) {
	case *ledger.AccountWrite:
		if settleKnown(&v.Known, &v.Owner, &v.RentEpoch, &v.Executable, &v.Token); v.Known&ledger.FieldMint == 0 {
			v.Mint = nil
		}
		v.TokenOwnerUnknown = v.TokenOwnerUnknown && v.Token != nil
	case *ledger.Account:
		settleKnown(&v.Known, &v.Owner, &v.RentEpoch, &v.Executable, &v.Token)
		if v.FieldProvenance != nil && v.Known&ledger.FieldMint == 0 {
			v.FieldProvenance[4] = 0
		}
	case *ledger.Mint:
		if !v.Supply.Known {
			v.SupplyProvenance = 0
		}
		if !v.Scaled.Known {
			v.ScaledProvenance = 0
		}
	case *ledger.Block:
		transactions := v.Transactions
		v.Transactions = nil
		for _, t := range transactions {
			v.AddTransaction(t)
		}
	case *ledger.Record:
		v.Block, v.Base = onlyIf(v.Kind == ledger.BlockRecord, v.Block), onlyIf(v.Kind == ledger.BaseRecord, v.Base)
		if v.Kind != ledger.StatusRecord {
			v.Status = 0
		}
		if v.Kind != ledger.RollbackRecord {
			v.FromSlot, v.Unchanged = 0, nil
		}
		v.ByDepth = v.ByDepth && v.Status == ledger.StatusFinalized
		for i := range v.Updates {
			v.Updates[i].Account.Known &^= ledger.FieldMint
		}
		for i := range v.Unchanged {
			v.Unchanged[i].Known &^= ledger.FieldMint
		}
	}
}

func settleKnown(known *ledger.Fields, owner *ledger.Pubkey, rentEpoch *uint64, executable *bool, token **ledger.TokenAccount) {
	*known &= ledger.FieldsAll
	if *known&ledger.FieldOwner == 0 {
		*owner = ledger.Pubkey{}
	}
	if *known&ledger.FieldRentEpoch == 0 {
		*rentEpoch = 0
	}
	if *known&ledger.FieldToken == 0 {
		*token = nil
	}
	*executable = *executable && *known&ledger.FieldExecutable != 0
}

// onlyIf returns nil or a value that is not nil.
func onlyIf[T any](wanted bool, v *T) *T {
	if wanted && v == nil {
		return new(T)
	} else if !wanted {
		return nil
	}
	return v
}
