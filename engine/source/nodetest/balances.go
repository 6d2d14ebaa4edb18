package nodetest

import (
	"strconv"

	"ledgerd/engine/ledger"
)

// blockBalances tells what each transaction of a block left behind. The simulator tells the state after the
// block alone: so an account changes in the last transaction that names it, and one that no transaction
// names was rewarded.
type blockBalances struct {
	ledger *Ledger
	block  *ledger.Block
	last   map[ledger.Pubkey]int                  // which transaction changes it
	writes map[ledger.Pubkey]*ledger.AccountWrite // what the block left

	rewards []object
}

// state is how an account stands beside a transaction: nil for not at all.
type state func(i int, key ledger.Pubkey) *ledger.AccountWrite

func (l *Ledger) balances(b *ledger.Block) *blockBalances {
	bb := &blockBalances{
		ledger: l, block: b, rewards: []object{},
		last: make(map[ledger.Pubkey]int), writes: make(map[ledger.Pubkey]*ledger.AccountWrite),
	}
	for i := range b.Transactions {
		for _, k := range b.Transactions[i].Accounts {
			bb.last[k] = i
		}
	}
	for i := range b.Accounts {
		bb.writes[b.Accounts[i].Pubkey] = &b.Accounts[i]
	}
	for i := range b.Accounts {
		w := &b.Accounts[i]
		if _, named := bb.last[w.Pubkey]; named {
			continue
		}
		before := ledger.Lamports(0)
		if was := l.at(w.Pubkey, b.Slot-1); was != nil {
			before = was.Lamports
		}
		bb.rewards = append(bb.rewards, object{
			"pubkey": w.Pubkey, "lamports": int64(w.Lamports) - int64(before), "postBalance": w.Lamports,
			"rewardType": "Fee", "commission": nil,
		})
	}
	return bb
}

// post returns an account after a transaction.
func (bb *blockBalances) post(i int, key ledger.Pubkey) *ledger.AccountWrite {
	if w := bb.writes[key]; w != nil && bb.last[key] <= i {
		if w.Lamports == 0 {
			return nil
		}
		return w
	}
	return bb.ledger.at(key, bb.block.Slot-1)
}

// pre returns an account before a transaction.
func (bb *blockBalances) pre(i int, key ledger.Pubkey) *ledger.AccountWrite { return bb.post(i-1, key) }

// lamports returns the balances of a transaction's accounts after it.
func (bb *blockBalances) lamports(i int) []ledger.Lamports {
	keys := bb.block.Transactions[i].Accounts
	out := make([]ledger.Lamports, len(keys))
	for n, k := range keys {
		if w := bb.post(i, k); w != nil {
			out[n] = w.Lamports
		}
	}
	return out
}

// tokens returns the token balances of a transaction's accounts.
func (bb *blockBalances) tokens(i int, at state) []object {
	out := []object{}
	for n, k := range bb.block.Transactions[i].Accounts {
		w := at(i, k)
		if w == nil || w.Token == nil {
			continue
		}
		mint := at(i, w.Token.Mint)
		if mint == nil || mint.Mint == nil {
			mint = bb.ledger.at(w.Token.Mint, bb.block.Slot)
		}
		if mint == nil || mint.Mint == nil {
			continue // the mint is gone, and with it the decimals
		}
		amount := strconv.FormatUint(w.Token.Amount, 10)
		shown := string(ledger.AppendUIAmount(nil, w.Token.Amount, mint.Mint.Decimals))
		if mint.Mint.Scaled.Value {
			shown = string(ledger.AppendUIAmount(nil, w.Token.Amount/2+1, mint.Mint.Decimals))
		}
		out = append(out, object{
			"accountIndex": n, "mint": w.Token.Mint, "owner": w.Token.Owner, "programId": w.Owner,
			"uiTokenAmount": object{"amount": amount, "decimals": mint.Mint.Decimals, "uiAmount": nil, "uiAmountString": shown},
		})
	}
	return out
}
