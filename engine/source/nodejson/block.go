package nodejson

import (
	"errors"
	"fmt"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// Block is the result of getBlock as far as we read it. What is absent or null was not
// asked for or never recorded.
type Block struct {
	ParentSlot        *ledger.Slot      `json:"parentSlot"`
	Blockhash         *ledger.Hash      `json:"blockhash"`
	PreviousBlockhash ledger.Hash       `json:"previousBlockhash"` // zero, which base58 writes as ones: the node did not know it
	BlockTime         *int64            `json:"blockTime"`
	BlockHeight       *uint64           `json:"blockHeight"`
	Transactions      []transactionJSON `json:"transactions"`
	Signatures        []string          `json:"signatures"` // instead of transactions
	Rewards           []rewardJSON      `json:"rewards"`

	// Unread is how many transactions At left out, because they are of a version that is not known here and cannot be read: what they
	// wrote is not known either.
	Unread int `json:"-"`
	// Untold is how many of the others come without the balances that they left: what these wrote is not known.
	Untold int `json:"-"`
}

// rewardJSON is one fee, staking, voting or rent entry of a block.
type rewardJSON struct {
	Type        string           `json:"rewardType"`
	Pubkey      *ledger.Pubkey   `json:"pubkey"`
	Lamports    int64            `json:"lamports"`
	PostBalance *ledger.Lamports `json:"postBalance"`
}

// Parent returns the slot of the block's parent.
func (j *Block) Parent() (ledger.Slot, error) {
	if j.ParentSlot == nil {
		return 0, Missing("parentSlot")
	}
	return *j.ParentSlot, nil
}

// At returns the block at slot, as final as a recorded one is. Its account writes are the rewards for voting and staking, which are
// credited before the first transaction, then what the metadata of its transactions shows, then its other rewards. Where data of some accounts is
// held, the writes say which accounts the block only read.
func (j *Block) At(slot ledger.Slot, held *ledger.DataPrograms) (*ledger.Block, error) {
	parent, err := j.Parent()
	switch {
	case err != nil:
		return nil, err
	case j.Blockhash == nil:
		return nil, Missing("blockhash")
	}
	b := &ledger.Block{
		Slot: slot, ParentSlot: parent, Blockhash: *j.Blockhash,
		Time: Optional(j.BlockTime), Height: Optional(j.BlockHeight),
		Status:           ledger.Finalized,
		TransactionCount: uint64(max(len(j.Transactions), len(j.Signatures))),
		Transactions:     make([]ledger.Transaction, 0, len(j.Transactions)),
	}
	if j.PreviousBlockhash != (ledger.Hash{}) {
		b.PreviousBlockhash = ledger.Some(j.PreviousBlockhash)
	}
	writes := newBlockWrites()
	writes.saysReads = held != nil
	if err := j.reward(writes, true); err != nil {
		return nil, err
	}
	for i := range j.Transactions {
		t, err := j.Transactions[i].read(writes)
		switch {
		case errors.Is(err, codec.ErrTransactionVersion) || err != nil && j.Transactions[i].Version > knownVersion:
			j.Unread++
		case err != nil:
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		default:
			b.AddTransaction(t)
			if m := j.Transactions[i].Meta; m == nil || m.PostBalances == nil {
				j.Untold++
			}
		}
	}
	if err := j.reward(writes, false); err != nil {
		return nil, err
	}
	b.Accounts, b.Mints = writes.accounts, writes.mints
	return b, nil
}

// reward writes the rewards that are credited before the transactions, or those after them.
func (j *Block) reward(writes *blockWrites, first bool) error {
	for i, r := range j.Rewards {
		if isFirst := r.Type == "Voting" || r.Type == "Staking"; isFirst != first {
			continue
		}
		if err := r.write(writes); err != nil {
			return fmt.Errorf("reward %d: %w", i, err)
		}
	}
	return nil
}

// write teaches the balance after the reward. Blocks of the first year say 0 for "not
// recorded"; only an account that paid can really be left with nothing.
func (r *rewardJSON) write(writes *blockWrites) error {
	if r.Pubkey == nil {
		return Missing("pubkey")
	}
	if r.PostBalance == nil || (*r.PostBalance == 0 && r.Lamports >= 0) {
		return nil
	}
	writes.add(ledger.AccountWrite{Pubkey: *r.Pubkey, Lamports: *r.PostBalance})
	return nil
}
