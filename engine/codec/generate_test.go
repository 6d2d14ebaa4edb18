package codec

import (
	"crypto/sha256"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
)

// The generators make values as sources and the sequencer make them: what is unknown is
// zero, and lists without items are nil.

func genKey(t *rapid.T) ledger.Pubkey {
	return sha256.Sum256([]byte{byte(rapid.IntRange(0, 255).Draw(t, "key"))})
}

func genSignature(t *rapid.T) (s ledger.Signature) {
	a, b := genKey(t), genKey(t)
	copy(s[:32], a[:])
	copy(s[32:], b[:])
	return s
}

func genOpt[T any](t *rapid.T, gen func(*rapid.T) T) ledger.Opt[T] {
	if !rapid.Bool().Draw(t, "known") {
		return ledger.Opt[T]{}
	}
	return ledger.Some(gen(t))
}

func genNumber(t *rapid.T) uint64    { return rapid.Uint64().Draw(t, "number") }
func genBool(t *rapid.T) bool        { return rapid.Bool().Draw(t, "bool") }
func genTime(t *rapid.T) int64       { return rapid.Int64().Draw(t, "time") }
func genHash(t *rapid.T) ledger.Hash { return ledger.Hash(genKey(t)) }

func genList[T any](t *rapid.T, gen func(*rapid.T) T) []T {
	n := rapid.IntRange(0, 4).Draw(t, "items")
	if n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		list[i] = gen(t)
	}
	return list
}

func genToken(t *rapid.T) *ledger.TokenAccount {
	return &ledger.TokenAccount{
		Mint:   genKey(t),
		Owner:  genKey(t),
		Amount: genNumber(t),
		Details: genOpt(t, func(t *rapid.T) ledger.TokenDetails {
			return ledger.TokenDetails{
				State:           ledger.TokenState(rapid.IntRange(0, 2).Draw(t, "state")),
				Delegate:        genOpt(t, genKey),
				DelegatedAmount: genNumber(t),
				CloseAuthority:  genOpt(t, genKey),
			}
		}),
	}
}

func genMint(t *rapid.T) ledger.Mint {
	m := ledger.Mint{
		Decimals:   uint8(rapid.IntRange(0, 255).Draw(t, "decimals")),
		Supply:     genOpt(t, genNumber),
		Scaled:     genOpt(t, genBool),
		Provenance: ledger.Provenance(genNumber(t)),
	}
	together := genBool(t)
	for _, f := range []struct {
		known      bool
		provenance *ledger.Provenance
	}{{m.Supply.Known, &m.SupplyProvenance}, {m.Scaled.Known, &m.ScaledProvenance}} {
		if *f.provenance = m.Provenance; !f.known {
			*f.provenance = 0
		} else if !together {
			*f.provenance = ledger.Provenance(genNumber(t))
		}
	}
	return m
}

func genWrite(t *rapid.T) ledger.AccountWrite {
	w := ledger.AccountWrite{
		Pubkey:   genKey(t),
		Lamports: ledger.Lamports(genNumber(t)),
		Known:    ledger.Fields(rapid.IntRange(0, int(ledger.FieldsAll)).Draw(t, "known fields")),
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
		w.Token = genToken(t)
		w.TokenOwnerUnknown = genBool(t)
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

func genAccount(t *rapid.T) ledger.Account {
	w := genWrite(t)
	a := ledger.Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch,
		Executable: w.Executable, Known: w.Known, Token: w.Token,
		Since: ledger.Provenance(genNumber(t)), Provenance: ledger.Provenance(genNumber(t)),
	}
	if genBool(t) {
		a.FieldProvenance = &ledger.FieldProvenance{
			ledger.Provenance(genNumber(t)), ledger.Provenance(genNumber(t)), ledger.Provenance(genNumber(t)), ledger.Provenance(genNumber(t)),
		}
		if a.Known&ledger.FieldMint != 0 {
			a.FieldProvenance[4] = ledger.Provenance(genNumber(t))
		}
	}
	return a
}

// genUpdated returns an account as updates show it.
func genUpdated(t *rapid.T) ledger.Account {
	a := genAccount(t)
	if a.Known &^= ledger.FieldMint; a.FieldProvenance != nil {
		a.FieldProvenance[4] = 0
	}
	return a
}

func genBlock(t *rapid.T) *ledger.Block {
	b := &ledger.Block{
		Slot:              ledger.Slot(genNumber(t)),
		ParentSlot:        ledger.Slot(genNumber(t)),
		Blockhash:         genHash(t),
		PreviousBlockhash: genOpt(t, genHash),
		Time:              genOpt(t, genTime),
		Height:            genOpt(t, genNumber),
		Status:            ledger.Commitment(rapid.IntRange(0, 2).Draw(t, "commitment")),
		TransactionCount:  genNumber(t),
	}
	for range rapid.IntRange(0, 4).Draw(t, "transactions") {
		b.AddTransaction(ledger.Transaction{
			Signature: genSignature(t),
			Fee:       genOpt(t, func(t *rapid.T) ledger.Lamports { return ledger.Lamports(genNumber(t)) }),
			Success:   genOpt(t, genBool),
			Accounts:  genList(t, genKey),
		})
	}
	b.Accounts = genList(t, genWrite)
	b.Mints = genList(t, genMintWrite)
	return b
}

func genBaseState(t *rapid.T) *ledger.BaseState {
	return &ledger.BaseState{Slot: ledger.Slot(genNumber(t)), Accounts: genList(t, genWrite), Mints: genList(t, genMintWrite)}
}

func genStatus(t *rapid.T) ledger.Status {
	return ledger.Status(rapid.IntRange(1, 3).Draw(t, "status"))
}

func genEvent(t *rapid.T) ledger.Event {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return genBlock(t)
	case 1:
		return genBaseState(t)
	}
	return &ledger.SlotStatus{Slot: ledger.Slot(genNumber(t)), Status: genStatus(t), Blockhash: genOpt(t, genHash)}
}

func genRecord(t *rapid.T) *ledger.Record {
	r := &ledger.Record{
		Version:  ledger.Version(genNumber(t)),
		Kind:     ledger.RecordKind(rapid.IntRange(1, 4).Draw(t, "kind")),
		Slot:     ledger.Slot(genNumber(t)),
		Hash:     genHash(t),
		Time:     genOpt(t, genTime),
		FirstSeq: ledger.Seq(genNumber(t)),
		Updates: genList(t, func(t *rapid.T) ledger.Update {
			return ledger.Update{Account: genUpdated(t), OwnerBefore: genOpt(t, genKey), WalletBefore: genOpt(t, genKey)}
		}),
		StateHash: ledger.StateHash{genNumber(t), genNumber(t), genNumber(t), genNumber(t)},
	}
	switch r.Kind {
	case ledger.BlockRecord:
		r.Block = genBlock(t)
	case ledger.BaseRecord:
		r.Base = genBaseState(t)
	case ledger.StatusRecord:
		r.Status = genStatus(t)
		r.ByDepth = r.Status == ledger.StatusFinalized && genBool(t)
	case ledger.RollbackRecord:
		r.FromSlot = ledger.Slot(genNumber(t))
		r.Unchanged = genList(t, genUpdated)
	}
	return r
}
