package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"ledgerd/engine/ledger"
)

const (
	testKeys       = 22
	testFinality   = 20 // the chain above the newest finalized block is kept at most so long
	testSignatures = 90
)

// generator makes a stream of events as bad as a source may show, with a model beside it
// that tells what would be a contradiction.
type generator struct {
	r    *rand.Rand
	m    *model
	made []*modelBlock // every block ever made, shown or not; parents as they were built
	late []*ledger.Block
	told []ledger.Event // statuses and base state that were shown

	hashes, signatures int
	lossy              bool // some blocks are never shown
	exact              bool // hashes are always told: what is meant does not depend on what came when
	whole              bool // every write shows everything
	blocksOnly         bool // base state is never shown
}

func (g *generator) chance(percent int) bool { return g.r.IntN(100) < percent }

func (g *generator) key() ledger.Pubkey    { return key(g.r.IntN(testKeys)) }
func (g *generator) wallet() ledger.Pubkey { return key(g.r.IntN(3)) }
func (g *generator) mint() ledger.Pubkey   { return key(5 + g.r.IntN(3)) }

func testPrograms() []ledger.Pubkey {
	return []ledger.Pubkey{ledger.SystemProgram, ledger.TokenProgram, ledger.Token2022Program, key(9), key(777)}
}

// next returns the next event, nil where chance chose one that would be no event at all.
func (g *generator) next() ledger.Event {
	e := g.choose()
	if _, isBlock := e.(*ledger.Block); e != nil && !isBlock {
		g.told = append(g.told, e)
	}
	return e
}

func (g *generator) choose() ledger.Event {
	if len(g.m.chain) == 0 {
		if g.chance(60) && !g.blocksOnly {
			return g.base(ledger.Slot(g.r.IntN(12)))
		}
		return g.root()
	}
	if len(g.m.chain)-1-g.m.finalized > testFinality && (g.m.statusSeen || !g.m.info.FinalityByDepth) {
		return g.status(g.m.chain[g.m.finalized+1+g.r.IntN(testFinality/2)], ledger.StatusFinalized)
	}
	switch n := g.r.IntN(100); {
	case n < 62:
		return g.block()
	case n < 70:
		return g.fromLate()
	case n < 76:
		return g.again()
	case n < 84 && !g.blocksOnly:
		return g.base(g.baseSlot())
	case g.m.info.FinalityByDepth && n < 98:
		return nil
	default:
		return g.anyStatus()
	}
}

func (g *generator) root() *ledger.Block {
	b := g.content(&ledger.Block{Slot: 10, ParentSlot: 9}, nil)
	g.made = append(g.made, &modelBlock{Block: b})
	return b
}

// content fills b with writes and transactions.
func (g *generator) content(b *ledger.Block, parent *modelBlock) *ledger.Block {
	g.hashes++
	b.Blockhash = hash(g.hashes)
	if g.chance(80) {
		b.Time = ledger.Some(int64(1_700_000_000 + b.Slot*7919%100*3600)) // hours away from its neighbours' times
	}
	if g.chance(70) {
		b.Height = ledger.Some(uint64(b.Slot) - 3)
	}
	for range g.r.IntN(5) {
		sig := signature(g.r.IntN(testSignatures))
		if g.chance(60) || len(g.m.chain) == 0 {
			sig = signature(g.signatures % testSignatures)
			g.signatures++
		}
		if !carries(b, sig) && !above(parent, sig) {
			t := ledger.Transaction{Signature: sig, Success: ledger.Some(g.chance(90)), Accounts: []ledger.Pubkey{g.key()}}
			if !t.Success.Value && g.chance(70) {
				t.Err = []string{`"AccountInUse"`, `{"InstructionError":[0,{"Custom":1}]}`}[g.r.IntN(2)]
			}
			b.AddTransaction(t)
		}
	}
	b.TransactionCount = uint64(len(b.Transactions) + g.r.IntN(3))
	closed := make(map[ledger.Pubkey]bool)
	for range g.r.IntN(9) {
		w := g.write()
		closed[w.Pubkey] = closed[w.Pubkey] || w.Lamports == 0
		b.Accounts = append(b.Accounts, w)
	}
	if k := g.mint(); g.chance(20) && !closed[k] {
		b.Mints = append(b.Mints, ledger.MintWrite{Pubkey: k, Mint: g.mintFacts()})
	}
	return b
}

func carries(b *ledger.Block, sig ledger.Signature) bool {
	return slices.ContainsFunc(b.Transactions, func(t ledger.Transaction) bool { return t.Signature == sig })
}

func above(b *modelBlock, sig ledger.Signature) bool {
	for ; b != nil; b = b.parent {
		if carries(b.Block, sig) {
			return true
		}
	}
	return false
}

// mintFacts returns facts of a mint, any of them unknown but the decimals. A ledger's decimals never change; what a
// source says of them may.
func (g *generator) mintFacts() (m ledger.Mint) {
	if m.Decimals = uint8(g.r.IntN(3)); g.chance(50) {
		m.Supply = ledger.Some(uint64(g.r.IntN(3)))
	}
	if g.chance(50) {
		m.Scaled = ledger.Some(g.chance(20))
	}
	return m
}

// write returns a write that shows everything, the lamports only, or any subset.
func (g *generator) write() ledger.AccountWrite {
	w := ledger.AccountWrite{Pubkey: g.key(), Lamports: ledger.Lamports(1 + g.r.IntN(3))}
	if g.chance(15) {
		w.Lamports = 0
	}
	switch n := g.r.IntN(4); {
	case n > 1 || g.whole:
		w.Known = ledger.FieldsAll
	case n == 1:
		w.Known = ledger.Fields(g.r.IntN(int(ledger.FieldsAll) + 1))
	}
	if w.Known&ledger.FieldOwner != 0 {
		w.Owner = testPrograms()[g.r.IntN(5)]
		if g.chance(40) {
			w.Owner = ledger.TokenProgram
		}
	}
	if w.Known&ledger.FieldExecutable != 0 {
		w.Executable = g.chance(20)
	}
	if w.Known&ledger.FieldRentEpoch != 0 {
		w.RentEpoch = uint64(g.r.IntN(2))
	}
	if w.Known&ledger.FieldToken != 0 && g.chance(70) {
		g.token(&w)
	}
	if w.Known&ledger.FieldMint != 0 && g.chance(50) {
		m := g.mintFacts()
		w.Mint = &m
	}
	if w.Known&ledger.FieldOwner != 0 && g.chance(60) {
		w.Known |= ledger.FieldData
		w.Data = ledger.NewData([]byte("data"[:g.r.IntN(4)]))
	} else {
		w.ReadOnly = g.chance(30)
	}
	return w
}

func (g *generator) token(w *ledger.AccountWrite) {
	w.Token = &ledger.TokenAccount{Mint: g.mint(), Owner: g.wallet(), Amount: uint64(g.r.IntN(3))}
	switch g.r.IntN(5) {
	case 0:
	case 1:
		w.TokenOwnerUnknown, w.Token.Owner = true, ledger.Pubkey{}
	default:
		d := ledger.TokenDetails{State: ledger.TokenState(1 + g.r.IntN(2)), DelegatedAmount: uint64(g.r.IntN(2))}
		if g.chance(30) {
			d.Delegate, d.CloseAuthority = ledger.Some(g.key()), ledger.Some(g.key())
		}
		w.Token.Details = ledger.Some(d)
	}
}

// baseSlot returns a slot around the tip, or far below it: of before an account was closed whose closing is forgotten.
func (g *generator) baseSlot() ledger.Slot {
	slot := g.m.tip().Slot + ledger.Slot(g.r.IntN(8))
	if g.chance(40) {
		return ledger.Slot(g.r.IntN(int(slot)))
	}
	return max(slot, 3) - 3
}

func (g *generator) base(slot ledger.Slot) ledger.Event {
	b := &ledger.BaseState{Slot: slot}
	for range 1 + g.r.IntN(6) {
		b.Accounts = append(b.Accounts, g.write())
	}
	if g.chance(40) {
		k := g.mint()
		b.Mints = append(b.Mints, ledger.MintWrite{Pubkey: k, Mint: g.mintFacts()})
	}
	return b
}

// block makes a block: mostly on the tip, else beside it, else on one nobody saw yet.
func (g *generator) block() ledger.Event {
	i := slices.IndexFunc(g.made, func(b *modelBlock) bool { return b.Block == g.m.tip().Block })
	parent := g.made[i]
	if g.chance(30) {
		parent = g.made[max(0, len(g.made)-1-g.r.IntN(12))]
	}
	slot := parent.Slot + 1
	for g.chance(20) {
		slot++
	}
	b := &ledger.Block{Slot: slot, ParentSlot: parent.Slot}
	if g.chance(85) || g.lossy || g.exact {
		b.PreviousBlockhash = ledger.Some(parent.Blockhash)
	}
	if g.chance(3) && !g.m.info.FinalityByDepth {
		b.Status = ledger.Confirmed
	}
	g.content(b, parent)
	g.made = append(g.made, &modelBlock{Block: b, parent: parent})
	switch {
	case g.lossy && g.chance(3):
		return nil
	case g.chance(12):
		g.late = append(g.late, b)
		return nil
	}
	return g.possible(b)
}

// possible returns b unless it contradicts what is final by now.
func (g *generator) possible(b *ledger.Block) ledger.Event {
	if final := g.m.finalizedSlot(); b.Slot <= final && b.Status == ledger.Processed || b.ParentSlot >= final {
		return b
	}
	return nil
}

func (g *generator) fromLate() ledger.Event {
	if len(g.late) == 0 {
		return nil
	}
	i := g.r.IntN(len(g.late))
	b := g.late[i]
	g.late = slices.Delete(g.late, i, i+1)
	return g.possible(b)
}

// again shows a block once more, be it held, waiting, abandoned or dead, or repeats a status or base state.
func (g *generator) again() ledger.Event {
	if g.chance(40) && len(g.told) > 0 {
		e := g.told[max(0, len(g.told)-1-g.r.IntN(30))]
		switch s, ok := e.(*ledger.SlotStatus); {
		case ok && s.Slot <= g.m.finalizedSlot():
			return nil
		case !ok && g.exact: // with restarts: what the log holds no more is learned again
			return nil
		}
		return e
	}
	if g.chance(40) {
		for _, b := range slices.Backward(g.made) {
			if g.m.gone[nameOf(b.Block)] && g.m.parentOf(b.Block) != nil {
				return g.possible(b.Block)
			}
		}
	}
	b := g.made[max(0, len(g.made)-1-g.r.IntN(30))].Block
	if slices.Contains(g.late, b) {
		return nil
	}
	return g.possible(b)
}

func (g *generator) status(b *modelBlock, s ledger.Status) ledger.Event {
	e := &ledger.SlotStatus{Slot: b.Slot, Status: s}
	if g.chance(70) || g.m.at(b.Slot) != b || g.exact {
		e.Blockhash = ledger.Some(b.Blockhash)
	}
	return e
}

// anyStatus says something of a block on the chain, beside it, waiting, or unknown.
func (g *generator) anyStatus() ledger.Event {
	said := []ledger.Status{ledger.StatusConfirmed, ledger.StatusConfirmed, ledger.StatusConfirmed, ledger.StatusDead}[g.r.IntN(4)]
	switch g.r.IntN(8) {
	case 0:
		return &ledger.SlotStatus{Slot: g.m.tip().Slot + 200, Status: said}
	case 1:
		if g.chance(30) {
			said = ledger.StatusFinalized
		}
		if len(g.m.waiting) > 0 {
			return status(g.m.waiting[g.r.IntN(len(g.m.waiting))].block, said)
		}
	case 2:
		return g.status(g.m.chain[g.m.finalized+g.r.IntN(len(g.m.chain)-g.m.finalized)], ledger.StatusFinalized)
	}
	var others []*modelBlock
	for _, b := range g.m.arrived {
		if g.m.tree[nameOf(b.Block)] == b && b.Slot > g.m.finalizedSlot() {
			others = append(others, b)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return g.status(others[max(0, len(others)-1-g.r.IntN(10))], said)
}

// newGenerator returns a generator for the model's source; the stream follows from the seed.
func newGenerator(seed uint64, m *model) *generator {
	digest := sha256.Sum256(binary.BigEndian.AppendUint64(nil, seed))
	return &generator{r: rand.New(rand.NewChaCha8(digest)), m: m}
}
