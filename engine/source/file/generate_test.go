package file

import (
	"crypto/sha256"
	"math"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
)

// The generators make events as sources make them: what is unknown is zero, and what means
// nothing is left out.

func genKey(t *rapid.T) ledger.Pubkey {
	if rapid.IntRange(0, 9).Draw(t, "special key") == 0 {
		return rapid.SampledFrom([]ledger.Pubkey{ledger.SystemProgram, ledger.NativeMint, ledger.NativeMint2022}).Draw(t, "which")
	}
	return sha256.Sum256([]byte{byte(rapid.IntRange(0, 255).Draw(t, "key"))})
}

// genHash never makes zeros, which mean that a hash is unknown.
func genHash(t *rapid.T) ledger.Hash {
	return sha256.Sum256([]byte{byte(rapid.IntRange(0, 255).Draw(t, "hash"))})
}

func genOpt[T any](t *rapid.T, gen func(*rapid.T) T) ledger.Opt[T] {
	if !rapid.Bool().Draw(t, "known") {
		return ledger.Opt[T]{}
	}
	return ledger.Some(gen(t))
}

func genList[T any](t *rapid.T, gen func(*rapid.T) T) []T {
	list := make([]T, rapid.IntRange(0, 4).Draw(t, "items"))
	for i := range list {
		list[i] = gen(t)
	}
	return list
}

func genNumber(t *rapid.T) uint64 {
	if rapid.Bool().Draw(t, "at the end") {
		return rapid.SampledFrom([]uint64{0, 1<<53 + 1, math.MaxInt64, math.MaxUint64}).Draw(t, "which")
	}
	return rapid.Uint64().Draw(t, "number")
}

func genBool(t *rapid.T) bool                { return rapid.Bool().Draw(t, "bool") }
func genLamports(t *rapid.T) ledger.Lamports { return ledger.Lamports(genNumber(t)) }

func genDetails(t *rapid.T) ledger.TokenDetails {
	return ledger.TokenDetails{
		State:           ledger.TokenState(rapid.IntRange(0, 2).Draw(t, "state")),
		Delegate:        genOpt(t, genKey),
		DelegatedAmount: genNumber(t),
		CloseAuthority:  genOpt(t, genKey),
	}
}

func genMint(t *rapid.T) ledger.Mint {
	return ledger.Mint{
		Decimals: uint8(rapid.IntRange(0, 255).Draw(t, "decimals")),
		Supply:   genOpt(t, genNumber),
		Scaled:   genOpt(t, genBool),
	}
}

func genWrite(t *rapid.T) ledger.AccountWrite {
	w := ledger.AccountWrite{
		Pubkey: genKey(t), Lamports: genLamports(t),
		Known: ledger.Fields(rapid.IntRange(0, int(ledger.FieldsAll)).Draw(t, "known fields")),
	}
	if w.Known&ledger.FieldOwner != 0 {
		w.Owner = genKey(t)
	}
	if w.Known&ledger.FieldExecutable != 0 {
		w.Executable = genBool(t)
	}
	if w.Known&ledger.FieldRentEpoch != 0 {
		w.RentEpoch = genNumber(t)
	}
	if w.Known&ledger.FieldToken != 0 && genBool(t) {
		w.Token = &ledger.TokenAccount{Mint: genKey(t), Amount: genNumber(t)}
		if w.TokenOwnerUnknown = genBool(t); !w.TokenOwnerUnknown {
			w.Token.Owner = genKey(t)
			w.Token.Details = genOpt(t, genDetails)
		}
	}
	if w.Known&ledger.FieldMint != 0 && genBool(t) {
		m := genMint(t)
		w.Mint = &m
	}
	return w
}

func genMintWrite(t *rapid.T) ledger.MintWrite {
	return ledger.MintWrite{Pubkey: genKey(t), Mint: genMint(t)}
}

func genTransaction(t *rapid.T) ledger.Transaction {
	a, b := genKey(t), genKey(t)
	return ledger.Transaction{
		Signature: ledger.Signature(append(a[:], b[:]...)),
		Fee:       genOpt(t, genLamports), Success: genOpt(t, genBool), Accounts: genList(t, genKey),
	}
}

func genBlock(t *rapid.T) *ledger.Block {
	b := &ledger.Block{
		Slot: ledger.Slot(genNumber(t)), Blockhash: genHash(t), PreviousBlockhash: genOpt(t, genHash),
		Time:   genOpt(t, func(t *rapid.T) int64 { return int64(genNumber(t)) }),
		Height: genOpt(t, genNumber),
		Status: ledger.Commitment(rapid.IntRange(0, 2).Draw(t, "commitment")),
	}
	if b.Slot > 0 {
		b.ParentSlot = ledger.Slot(rapid.Uint64Range(0, uint64(b.Slot)-1).Draw(t, "parent slot"))
	}
	for _, transaction := range genList(t, genTransaction) {
		b.AddTransaction(transaction)
	}
	b.TransactionCount = max(uint64(len(b.Transactions)), rapid.Uint64Range(0, 6).Draw(t, "stated transactions"))
	b.Accounts, b.Mints = genList(t, genWrite), genList(t, genMintWrite)
	return b
}

func genEvent(t *rapid.T) ledger.Event {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return genBlock(t)
	case 1:
		return &ledger.BaseState{Slot: ledger.Slot(genNumber(t)), Accounts: genList(t, genWrite), Mints: genList(t, genMintWrite)}
	}
	return &ledger.SlotStatus{
		Slot: ledger.Slot(genNumber(t)), Blockhash: genOpt(t, genHash),
		Status: ledger.Status(rapid.IntRange(1, 3).Draw(t, "status")),
	}
}
