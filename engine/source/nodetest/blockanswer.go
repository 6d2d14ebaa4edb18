package nodetest

import (
	"encoding/json"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

// getBlocksWithLimit lists the first blocks from a slot on, or from the first that is kept (rpc/src/rpc.rs): start, limit and options.
func (c *Call) getBlocksWithLimit(chain Chain) (any, *CallError) {
	var start ledger.Slot
	var limit int
	level, failed := c.read(&start, &limit)
	if failed != nil {
		return nil, failed
	}
	newest, slots := chain.Newest(level), []ledger.Slot{}
	for _, slot := range chain.Slots() {
		if slot >= max(start, chain.First()) && slot <= newest && len(slots) < limit {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

// getBlock answers a block: its slot, and options.
func (c *Call) getBlock(chain Chain) (any, *CallError) {
	var slot ledger.Slot
	level, failed := c.read(&slot)
	switch {
	case failed != nil:
		return nil, failed
	case slot > chain.Newest(level):
		return nil, &CallError{-32004, fmt.Sprintf("Block not available for slot %d", slot)}
	}
	b, failed := chain.Block(slot, &c.Options)
	if b == nil && failed == nil {
		failed = &CallError{-32007, fmt.Sprintf("Slot %d was skipped, or missing due to ledger jump to recent snapshot", slot)}
	}
	return b, failed
}

// What a node knows of its ledger.

// Newest, Context, First, Slots, Block and Account implement Chain.
func (n *Node) Newest(level ledger.Commitment) ledger.Slot {
	if stale, lasts := n.faults.lasting(Stale); lasts {
		return n.tipBefore(stale.N, level)
	}
	return n.Tip(level)
}

func (n *Node) Context(level ledger.Commitment) ledger.Slot { return n.Newest(level) }

func (n *Node) First() ledger.Slot { return 0 }

func (n *Node) Slots() (slots []ledger.Slot) {
	for _, b := range n.ledger.main {
		if !n.hides(b.Slot) {
			slots = append(slots, b.Slot)
		}
	}
	return slots
}

func (n *Node) hides(slot ledger.Slot) bool {
	_, hides := n.faults.lasting(Hide)
	return hides && slot%3 == 0
}

func (n *Node) Block(slot ledger.Slot, o *Options) (any, *CallError) {
	i := slices.IndexFunc(n.ledger.main, func(b *ledger.Block) bool { return b.Slot == slot })
	if i < 0 || n.hides(slot) {
		return nil, nil
	}
	if _, isMissing := n.faults.take(Missing); isMissing {
		return nil, nil
	}
	return n.ledger.blockAnswer(n.ledger.main[i], o)
}

func (n *Node) Account(key ledger.Pubkey, at ledger.Slot) (*ledger.AccountWrite, []byte) {
	w := n.ledger.at(key, at)
	if w == nil {
		return nil, nil
	}
	return w, accountData(w)
}

// object is a JSON object.
type object = map[string]any

// blockAnswer spells a block that was made.
func (l *Ledger) blockAnswer(b *ledger.Block, o *Options) (any, *CallError) {
	out := object{
		"blockhash": b.Blockhash, "parentSlot": b.ParentSlot, "previousBlockhash": b.PreviousBlockhash.Value,
		"blockTime": b.Time.Value, "blockHeight": b.Height.Value,
	}
	switch {
	case o.Details == "none":
		return out, nil
	case o.Details != "full" || o.Encoding != "json":
		return nil, invalid("this node knows full blocks in JSON")
	}
	balances, rewards := l.balances(b)
	transactions := make([]object, len(b.Transactions))
	for i := range b.Transactions {
		if _, _, _, versioned := split(&b.Transactions[i]); versioned && o.MaxVersion == nil {
			return nil, &CallError{-32015, "Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: \"maxSupportedTransactionVersion\": 0"}
		}
		transactions[i] = balances.transaction(i)
	}
	out["transactions"], out["rewards"] = transactions, rewards
	return out, nil
}

// transaction spells the i-th transaction with its metadata, as far as sources read it. All that nodes answer is in the
// recorded blocks, which package rpc has answered.
func (bb *blockBalances) transaction(i int) object {
	tx := &bb.block.Transactions[i]
	static, writable, readonly, versioned := split(tx)
	meta := object{
		"err": nil, "fee": tx.Fee.Value, "postBalances": bb.lamports(i),
		"preTokenBalances": bb.tokens(i, i-1), "postTokenBalances": bb.tokens(i, i),
		"loadedAddresses": object{"writable": append([]ledger.Pubkey{}, writable...), "readonly": append([]ledger.Pubkey{}, readonly...)},
	}
	if !tx.Success.Value {
		meta["err"] = json.RawMessage(tx.Err)
	}
	body := object{"signatures": []ledger.Signature{tx.Signature}, "message": object{"accountKeys": static}}
	out := object{"meta": meta, "transaction": body, "version": "legacy"}
	if versioned {
		out["version"] = 0
	}
	return out
}

// split says how the accounts of a made transaction are spread: static keys in the message, then those
// loaded from a lookup table. Every third transaction of four accounts or more is of version 0 and loads
// its last two, one writable and one readonly.
func split(tx *ledger.Transaction) (static, writable, readonly []ledger.Pubkey, versioned bool) {
	n := len(tx.Accounts)
	if n < 4 || tx.Index%3 != 2 {
		return tx.Accounts, nil, nil, false
	}
	return tx.Accounts[:n-2], tx.Accounts[n-2 : n-1], tx.Accounts[n-1:], true
}
