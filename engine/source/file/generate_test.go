package file

import (
	"crypto/sha256"
	"fmt"
	"math"
	"reflect"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
)

func oneOf[T any](values ...T) *rapid.Generator[any] { return rapid.SampledFrom(values).AsAny() }

// hashes never makes zeros, which mean that a hash is unknown.
var hashes = rapid.Custom(func(t *rapid.T) [32]byte { return sha256.Sum256([]byte{rapid.Byte().Draw(t, "hash")}) })

// numbers makes every other one special.
var numbers = rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1<<53 + 1, math.MaxInt64, math.MaxUint64}))

// values makes events by reflection.
var values = rapid.MakeConfig{
	Kinds: map[reflect.Kind]*rapid.Generator[any]{
		reflect.Uint64: numbers.AsAny(),
		reflect.Int64:  rapid.Map(numbers, func(n uint64) int64 { return int64(n) }).AsAny(),
	},
	Types: map[reflect.Type]*rapid.Generator[any]{
		reflect.TypeFor[ledger.Hash](): hashes.AsAny(),
		reflect.TypeFor[ledger.Pubkey](): rapid.OneOf(hashes, hashes, hashes,
			rapid.SampledFrom([][32]byte{ledger.SystemProgram, ledger.NativeMint, ledger.NativeMint2022})).AsAny(),
		reflect.TypeFor[ledger.Fields]():     rapid.ByteRange(0, byte(ledger.FieldsAll|ledger.FieldData)).AsAny(),
		reflect.TypeFor[ledger.Data]():       oneOf(ledger.Data{}, ledger.NewData([]byte{1}), ledger.NewData([]byte("some text"))),
		reflect.TypeFor[ledger.Provenance](): oneOf[ledger.Provenance](0),
		reflect.TypeFor[ledger.Commitment](): oneOf(ledger.Processed, ledger.Confirmed, ledger.Finalized),
		reflect.TypeFor[ledger.TokenState](): oneOf(ledger.TokenUninitialized, ledger.TokenInitialized, ledger.TokenFrozen),
		reflect.TypeFor[ledger.Status]():     oneOf(ledger.StatusConfirmed, ledger.StatusFinalized, ledger.StatusDead),
	},
}

// genEvent makes an event as sources make it: what means nothing is left out.
func genEvent(t *rapid.T) ledger.Event {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		b := rapid.MakeCustom[ledger.Block](values).Draw(t, "block")
		b.ParentSlot %= max(b.Slot, 1)
		b.TransactionCount = max(b.TransactionCount, uint64(len(b.Transactions)))
		for i := range b.Transactions {
			if tx := &b.Transactions[i]; !tx.Success.Known || tx.Success.Value || tx.Err == "" {
				tx.Err = ""
			} else {
				tx.Err = fmt.Sprintf(`{"Custom":%d}`, len(tx.Err))
			}
		}
		settle(b.Accounts)
		return &b
	case 1:
		state := rapid.MakeCustom[ledger.BaseState](values).Draw(t, "base state")
		settle(state.Accounts)
		if state.Level.Value == ledger.Finalized {
			state.Level = ledger.Opt[ledger.Commitment]{}
		}
		return &state
	}
	status := rapid.MakeCustom[ledger.SlotStatus](values).Draw(t, "status")
	return &status
}

// settle leaves out what the writes do not know.
func settle(writes []ledger.AccountWrite) {
	for i := range writes {
		w := &writes[i]
		w.Executable = w.Executable && w.Known&ledger.FieldExecutable != 0
		if w.Known&ledger.FieldToken == 0 {
			w.Token = nil
		}
		if w.Known&ledger.FieldMint == 0 {
			w.Mint = nil
		}
		if w.Known&ledger.FieldOwner == 0 {
			w.Known &^= ledger.FieldData
		}
		if w.Known&ledger.FieldData == 0 {
			w.Data = ledger.Data{}
		} else {
			w.ReadOnly = false
		}
		if w.Token != nil && w.TokenOwnerUnknown {
			*w.Token = ledger.TokenAccount{Mint: w.Token.Mint, Amount: w.Token.Amount}
		}
	}
}
