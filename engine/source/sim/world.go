package sim

import (
	"math"

	"ledgerd/engine/ledger"
)

// cell is the state of one account: all of it that changes.
type cell struct {
	lamports  uint64 // 0: closed
	amount    uint64 // of a holding; of a mint the supply
	delegated uint64 // how much of a holding its delegate may move
	delegate  ref    // a wallet; 0: none
	frozen    bool
	touched   bool // listed in world.touched
}

func (c *cell) open() bool { return c.lamports != 0 }

// world is the state of every account, at the tip of whichever branch is being built.
type world struct {
	layout
	keys  []ledger.Pubkey // by position
	cells []cell          // by position
	held  *ledger.DataPrograms

	touched []ref    // the accounts of the present block, as they were first touched
	undo    []undone // on a branch: the way back to where it began
	branch  bool     // a branch is being built that will be abandoned
}

// undone is a cell as it was before a block of a branch.
type undone struct {
	at     ref
	before cell
}

// newWorld returns a world in which nothing exists yet.
func newWorld(l layout) *world {
	w := &world{layout: l, keys: make([]ledger.Pubkey, l.size()), cells: make([]cell, l.size())}
	for r := range w.keys {
		w.keys[r] = l.key(ref(r))
	}
	return w
}

// touch returns the cell of an account that the present block changes. The pointer is
// good until the block is done.
func (w *world) touch(r ref) *cell {
	c := &w.cells[r]
	if !c.touched {
		if w.branch {
			w.undo = append(w.undo, undone{r, *c})
		}
		c.touched = true
		w.touched = append(w.touched, r)
	}
	return c
}

// abandonBranch goes back to the state in which the branch began.
func (w *world) abandonBranch() {
	for i := len(w.undo) - 1; i >= 0; i-- {
		w.cells[w.undo[i].at] = w.undo[i].before
	}
	w.undo, w.branch = w.undo[:0], false
}

// writes returns one write for each account touched since the last call, in the order they
// were first touched.
func (w *world) writes() []ledger.AccountWrite {
	out := make([]ledger.AccountWrite, len(w.touched))
	for i, r := range w.touched {
		w.cells[r].touched = false
		w.write(&out[i], r)
	}
	w.touched = w.touched[:0]
	return out
}

// write fills out with the whole present state of an account. Token and mint facts are allocated
// one by one: they live as long as the account's state does, and in a slab the
// last of them would keep all.
func (w *world) write(out *ledger.AccountWrite, r ref) {
	c := &w.cells[r]
	out.Pubkey, out.Lamports, out.Known = w.keys[r], ledger.Lamports(c.lamports), ledger.FieldsAll
	if !c.open() {
		return
	}
	out.RentEpoch = math.MaxUint64 // what the real ledger shows for rent-exempt accounts
	switch {
	case w.isWallet(r):
		out.Owner = ledger.SystemProgram
	case w.isHolding(r):
		mint := w.mintOf(r)
		out.Owner = programKeys[w.programOf(mint)]
		out.Token = &ledger.TokenAccount{
			Mint: w.keys[mint], Owner: w.keys[w.ownerOf(r)], Amount: c.amount,
			Details: ledger.Some(w.details(r, mint)),
		}
	case w.isMint(r):
		out.Owner = programKeys[w.programOf(r)]
		out.Mint = &ledger.Mint{
			Decimals: w.decimalsOf(r), Supply: ledger.Some(c.amount), Scaled: ledger.Some(w.isScaled(r)),
		}
	case w.voteAccounts.has(r):
		out.Owner = ledger.VoteProgram
	case w.pools.has(r):
		out.Owner = poolProgramKey
	case w.poolProgram.has(r):
		out.Owner, out.Executable = upgradeableLoader, true
	default:
		out.Owner, out.Executable = programOwners[r], true
	}
	if w.held.Keep(&out.Owner) {
		if data, known := w.data(r); known {
			out.SetData(data, w.held)
		}
	}
}

// details returns the part of a holding that its data alone would show.
func (w *world) details(holding, mint ref) ledger.TokenDetails {
	c := &w.cells[holding]
	d := ledger.TokenDetails{State: ledger.TokenInitialized, DelegatedAmount: c.delegated}
	if c.frozen {
		d.State = ledger.TokenFrozen
	}
	if c.delegate != 0 {
		d.Delegate = ledger.Some(w.keys[c.delegate])
	}
	if w.hasCloseAuthority(holding) {
		d.CloseAuthority = ledger.Some(w.keys[w.issuerOf(mint)])
	}
	return d
}
