package ledger

import (
	"crypto/sha256"

	"pgregory.net/rapid"
)

// The generators make values as sources and the sequencer make them: what is unknown is
// zero, and lists without items are nil.

func genKey(t *rapid.T) Pubkey {
	return sha256.Sum256([]byte{byte(rapid.IntRange(0, 255).Draw(t, "key"))})
}

func genSignature(t *rapid.T) (s Signature) {
	a, b := genKey(t), genKey(t)
	copy(s[:32], a[:])
	copy(s[32:], b[:])
	return s
}

func genOpt[T any](t *rapid.T, gen func(*rapid.T) T) Opt[T] {
	if !rapid.Bool().Draw(t, "known") {
		return Opt[T]{}
	}
	return Some(gen(t))
}

func genNumber(t *rapid.T) uint64 { return rapid.Uint64().Draw(t, "number") }
func genBool(t *rapid.T) bool     { return rapid.Bool().Draw(t, "bool") }
func genTime(t *rapid.T) int64    { return rapid.Int64().Draw(t, "time") }
func genHash(t *rapid.T) Hash     { return Hash(genKey(t)) }

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

func genToken(t *rapid.T) *TokenAccount {
	return &TokenAccount{
		Mint:   genKey(t),
		Owner:  genKey(t),
		Amount: genNumber(t),
		Details: genOpt(t, func(t *rapid.T) TokenDetails {
			return TokenDetails{
				State:           TokenState(rapid.IntRange(0, 2).Draw(t, "state")),
				Delegate:        genOpt(t, genKey),
				DelegatedAmount: genNumber(t),
				CloseAuthority:  genOpt(t, genKey),
			}
		}),
	}
}

func genMint(t *rapid.T) Mint {
	m := Mint{
		Decimals: uint8(rapid.IntRange(0, 255).Draw(t, "decimals")),
		Supply:   genOpt(t, genNumber),
		Scaled:   genOpt(t, genBool),
		Taught:   Taught(genNumber(t)),
	}
	together := genBool(t)
	for _, f := range []struct {
		known  bool
		taught *Taught
	}{{m.Supply.Known, &m.SupplyTaught}, {m.Scaled.Known, &m.ScaledTaught}} {
		if *f.taught = m.Taught; !f.known {
			*f.taught = 0
		} else if !together {
			*f.taught = Taught(genNumber(t))
		}
	}
	return m
}

func genWrite(t *rapid.T) AccountWrite {
	w := AccountWrite{
		Pubkey:   genKey(t),
		Lamports: Lamports(genNumber(t)),
		Known:    Fields(rapid.IntRange(0, int(FieldsAll)).Draw(t, "known fields")),
	}
	if w.Known&FieldOwner != 0 {
		w.Owner = genKey(t)
	}
	if w.Known&FieldExecutable != 0 {
		w.Executable = genBool(t)
	}
	if w.Known&FieldRentEpoch != 0 {
		w.RentEpoch = genNumber(t)
	}
	if w.Known&FieldToken != 0 && genBool(t) {
		w.Token = genToken(t)
		w.TokenOwnerUnknown = genBool(t)
	}
	if w.Known&FieldMint != 0 && genBool(t) {
		m := genMint(t)
		w.Mint = &m
	}
	return w
}

func genMintWrite(t *rapid.T) MintWrite { return MintWrite{genKey(t), genMint(t)} }

func genAccount(t *rapid.T) Account {
	w := genWrite(t)
	a := Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch,
		Executable: w.Executable, Known: w.Known, Token: w.Token,
		Since: Taught(genNumber(t)), Taught: Taught(genNumber(t)),
	}
	if genBool(t) {
		a.Earlier = &EarlierFields{
			Taught(genNumber(t)), Taught(genNumber(t)), Taught(genNumber(t)), Taught(genNumber(t)), 0,
		}
		if a.Known&FieldMint != 0 {
			a.Earlier.Mint = Taught(genNumber(t))
		}
	}
	return a
}

// genUpdated returns an account as updates show it.
func genUpdated(t *rapid.T) Account {
	a := genAccount(t)
	if a.Known &^= FieldMint; a.Earlier != nil {
		a.Earlier.Mint = 0
	}
	return a
}

func genBlock(t *rapid.T) *Block {
	b := &Block{
		Slot:              Slot(genNumber(t)),
		ParentSlot:        Slot(genNumber(t)),
		Blockhash:         genHash(t),
		PreviousBlockhash: genOpt(t, genHash),
		Time:              genOpt(t, genTime),
		Height:            genOpt(t, genNumber),
		Status:            Commitment(rapid.IntRange(0, 2).Draw(t, "commitment")),
		TransactionCount:  genNumber(t),
	}
	for range rapid.IntRange(0, 4).Draw(t, "transactions") {
		b.AddTransaction(Transaction{
			Signature: genSignature(t),
			Fee:       genOpt(t, func(t *rapid.T) Lamports { return Lamports(genNumber(t)) }),
			Success:   genOpt(t, genBool),
			Accounts:  genList(t, genKey),
		})
	}
	b.Accounts = genList(t, genWrite)
	b.Mints = genList(t, genMintWrite)
	return b
}

func genBaseState(t *rapid.T) *BaseState {
	return &BaseState{Slot: Slot(genNumber(t)), Accounts: genList(t, genWrite), Mints: genList(t, genMintWrite)}
}

func genStatus(t *rapid.T) Status { return Status(rapid.IntRange(1, 3).Draw(t, "status")) }

func genEvent(t *rapid.T) Event {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return genBlock(t)
	case 1:
		return genBaseState(t)
	}
	return &SlotStatus{Slot: Slot(genNumber(t)), Status: genStatus(t), Blockhash: genOpt(t, genHash)}
}

func genRecord(t *rapid.T) *Record {
	r := &Record{
		Version:  Version(genNumber(t)),
		Kind:     RecordKind(rapid.IntRange(1, 4).Draw(t, "kind")),
		Slot:     Slot(genNumber(t)),
		Hash:     genHash(t),
		Time:     genOpt(t, genTime),
		FirstSeq: Seq(genNumber(t)),
		Updates: genList(t, func(t *rapid.T) Update {
			return Update{Account: genUpdated(t), OwnerBefore: genOpt(t, genKey), WalletBefore: genOpt(t, genKey)}
		}),
		StateHash: StateHash{genNumber(t), genNumber(t), genNumber(t), genNumber(t)},
	}
	switch r.Kind {
	case BlockRecord:
		r.Block = genBlock(t)
	case BaseRecord:
		r.Base = genBaseState(t)
	case StatusRecord:
		r.Status = genStatus(t)
		r.ByDepth = r.Status == StatusFinalized && genBool(t)
	case RollbackRecord:
		r.FromSlot = Slot(genNumber(t))
		r.Unchanged = genList(t, genUpdated)
	}
	return r
}

func genStateHash(t *rapid.T) StateHash {
	return StateHash{genNumber(t), genNumber(t), genNumber(t), genNumber(t)}
}
