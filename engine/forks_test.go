package engine

import "ledgerd/engine/ledger"

// forkAccounts are accounts, one for each way an account can fare in a branch.
type forkAccounts struct {
	created, changed, closed, reowned, recreated, untouched, flicker ledger.Pubkey
	holding, mint, wallet, otherWallet, program                      ledger.Pubkey
}

func newForkAccounts() forkAccounts {
	return forkAccounts{key(1), key(2), key(3), key(4), key(5), key(6), key(7), key(8), key(9), key(10), key(11), key(12)}
}

// root returns the block on which all branches stand.
func (f forkAccounts) root() *ledger.Block {
	mint := owned(f.mint, 1, ledger.TokenProgram)
	mint.Mint = &ledger.Mint{Decimals: 6, Supply: ledger.Some(uint64(1000)), Scaled: ledger.Some(false)}
	b := rootBlock(100,
		lamports(f.changed, 20), lamports(f.closed, 30), lamports(f.reowned, 40), lamports(f.recreated, 50),
		lamports(f.untouched, 60), holding(f.holding, f.mint, f.wallet, 700), mint)
	return with(b, signature(0))
}

// branch returns depth blocks on parent that do to each account what its name says, spread over the blocks.
func (f forkAccounts) branch(parent *ledger.Block, first ledger.Slot, depth int) (blocks []*ledger.Block) {
	writes := [][]ledger.AccountWrite{
		{lamports(f.created, 11), lamports(f.flicker, 5), lamports(f.recreated, 0)},
		{lamports(f.changed, 21), lamports(f.closed, 0)},
		{owned(f.reowned, 40, f.program), owned(f.recreated, 51, f.program)},
		{holding(f.holding, f.mint, f.otherWallet, 701)},
		{lamports(f.flicker, 0), lamports(f.untouched, 61), lamports(f.untouched, 60)},
	}
	for i := range depth {
		b := child(parent, first+ledger.Slot(i), 1)
		for at := i; at < len(writes); at += depth {
			b.Accounts = append(b.Accounts, writes[at]...)
		}
		parent = with(b, signature(1+i), signature(50+i))
		blocks = append(blocks, parent)
	}
	return blocks
}
