package testnode

import (
	"encoding/json"

	"ledgerd/engine/ledger"
)

// getBlocksWithLimit lists the first blocks from a slot on: start, limit and options.
func (n *Node) getBlocksWithLimit(c *call) (any, *callError) {
	var start ledger.Slot
	var limit int
	newest, _, failed := n.newest(c, &start, &limit)
	if failed != nil {
		return nil, failed
	}
	slots := []ledger.Slot{}
	_, hides := n.faults.lasting(Hide)
	for _, b := range n.ledger.main {
		if b.Slot >= start && b.Slot <= newest && len(slots) < limit && !(hides && b.Slot%3 == 0) {
			slots = append(slots, b.Slot)
		}
	}
	return slots, nil
}

// missingWays is how many ways there are to say that a block is missing.
const missingWays = 5

// missing says that a block that is there is not.
func missing(slot ledger.Slot, how int) *callError {
	s := number(slot)
	switch how % missingWays {
	case 1:
		return &callError{codeSkippedLongTerm, "Slot " + s + " was skipped, or missing in long-term storage"}
	case 2:
		return &callError{codeNotAvailable, "Block not available for slot " + s}
	case 3:
		return &callError{codeStatusUnknown, "Block status not yet available for slot " + s}
	}
	return skipped(slot)
}

func skipped(slot ledger.Slot) *callError {
	return &callError{codeSkipped, "Slot " + number(slot) + " was skipped, or missing due to ledger jump to recent snapshot"}
}

// getBlock answers a block: its slot, and options.
func (n *Node) getBlock(c *call) (any, *callError) {
	var slot ledger.Slot
	newest, o, failed := n.newest(c, &slot)
	switch {
	case failed != nil:
		return nil, failed
	case slot > newest:
		return nil, &callError{codeNotAvailable, "Block not available for slot " + number(slot)}
	}
	b := n.ledger.mainAt[slot]
	if _, hides := n.faults.lasting(Hide); b == nil || hides && slot%3 == 0 {
		return nil, skipped(slot)
	}
	if f, ok := n.faults.take(Missing); ok {
		if f.How%missingWays == missingWays-1 {
			return nil, nil
		}
		return nil, missing(slot, f.How)
	}
	return n.ledger.blockAnswer(b, &o)
}

// object is a JSON object.
type object = map[string]any

// blockAnswer spells a block that was made.
func (l *Ledger) blockAnswer(b *ledger.Block, o *options) (any, *callError) {
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
	balances := l.balances(b)
	transactions := make([]object, len(b.Transactions))
	for i := range b.Transactions {
		if _, _, _, versioned := split(&b.Transactions[i]); versioned && o.MaxVersion == nil {
			return nil, &callError{codeVersion, "Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: \"maxSupportedTransactionVersion\": 0"}
		}
		transactions[i] = balances.transaction(i)
	}
	out["transactions"], out["rewards"] = transactions, balances.rewards
	return out, nil
}

// transaction spells the i-th transaction with its metadata, as far as sources read it. All that nodes answer is in the
// recorded blocks, which package rpc has answered.
func (bb *blockBalances) transaction(i int) object {
	tx := &bb.block.Transactions[i]
	static, writable, readonly, versioned := split(tx)
	meta := object{
		"err": nil, "fee": tx.Fee.Value,
		"preBalances": bb.lamports(i, bb.pre), "postBalances": bb.lamports(i, bb.post),
		"preTokenBalances": bb.tokens(i, bb.pre), "postTokenBalances": bb.tokens(i, bb.post),
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
