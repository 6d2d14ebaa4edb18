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
}

func (l *Ledger) balances(b *ledger.Block) (bb *blockBalances, rewards []object) {
	bb = &blockBalances{l, b, make(map[ledger.Pubkey]int), make(map[ledger.Pubkey]*ledger.AccountWrite)}
	for i := range b.Transactions {
		for _, k := range b.Transactions[i].Accounts {
			bb.last[k] = i
		}
	}
	rewards = []object{}
	for i := range b.Accounts {
		w, before := &b.Accounts[i], new(ledger.AccountWrite)
		bb.writes[w.Pubkey] = w
		if _, named := bb.last[w.Pubkey]; named {
			continue
		}
		if was := l.at(w.Pubkey, b.Slot-1); was != nil {
			before = was
		}
		rewards = append(rewards, object{
			"pubkey": w.Pubkey, "lamports": int64(w.Lamports) - int64(before.Lamports), "postBalance": w.Lamports,
			"rewardType": "Fee", "commission": nil,
		})
	}
	return bb, rewards
}

// after returns an account after a transaction, nil if it does not exist then; -1 is before the first.
func (bb *blockBalances) after(i int, key ledger.Pubkey) *ledger.AccountWrite {
	w := bb.writes[key]
	switch {
	case w == nil || bb.last[key] > i:
		return bb.ledger.at(key, bb.block.Slot-1)
	case w.Lamports == 0:
		return nil
	}
	return w
}

// lamports returns the balances of a transaction's accounts after it.
func (bb *blockBalances) lamports(i int) []ledger.Lamports {
	keys := bb.block.Transactions[i].Accounts
	out := make([]ledger.Lamports, len(keys))
	for n, k := range keys {
		if w := bb.after(i, k); w != nil {
			out[n] = w.Lamports
		}
	}
	return out
}

// tokens returns the token balances of a transaction's accounts after one.
func (bb *blockBalances) tokens(transaction, after int) []object {
	out := []object{}
	for n, k := range bb.block.Transactions[transaction].Accounts {
		w := bb.after(after, k)
		if w == nil || w.Token == nil {
			continue
		}
		mint := bb.after(after, w.Token.Mint)
		if mint == nil || mint.Mint == nil {
			mint = bb.ledger.at(w.Token.Mint, bb.block.Slot)
		}
		if mint == nil || mint.Mint == nil {
			continue // the mint is gone, and with it the decimals
		}
		shown := w.Token.Amount
		if mint.Mint.Scaled.Value {
			shown = shown/2 + 1
		}
		out = append(out, object{
			"accountIndex": n, "mint": w.Token.Mint, "owner": w.Token.Owner, "programId": w.Owner,
			"uiTokenAmount": object{
				"amount": strconv.FormatUint(w.Token.Amount, 10), "decimals": mint.Mint.Decimals, "uiAmount": nil,
				"uiAmountString": string(ledger.AppendUIAmount(nil, shown, mint.Mint.Decimals)),
			},
		})
	}
	return out
}
