package testnode

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger"
)

// maxBlockRange is how many slots getBlocks looks at.
const maxBlockRange = 500_000

// genesis returns what stands for the genesis hash: the parent of the first block.
func (l *Ledger) genesis() ledger.Hash {
	if len(l.main) == 0 {
		return ledger.Hash{}
	}
	return l.main[0].PreviousBlockhash.Value
}

// slotOf returns the slot that a call about blocks begins with, the newest slot at the level that it
// asks for, and its options.
func (n *Node) slotOf(c *call) (slot, newest ledger.Slot, o options, failed *callError) {
	var number uint64
	if !c.parameter(0, &number) {
		return 0, 0, o, invalid("Invalid params: invalid type")
	}
	if o, failed = c.options(1); failed != nil {
		return 0, 0, o, failed
	}
	newest, level, failed := n.newest(&o)
	if failed == nil && level == ledger.Processed {
		failed = invalid("Method does not support commitment below `confirmed`")
	}
	return ledger.Slot(number), newest, o, failed
}

// getBlocks lists the blocks of a range: start, and end or options.
func (n *Node) getBlocks(c *call) (any, *callError) {
	start, newest, _, failed := n.slotOf(c)
	if failed != nil {
		return nil, failed
	}
	var end uint64
	if !c.parameter(1, &end) {
		end = uint64(start) + maxBlockRange
	}
	slots := []ledger.Slot{}
	switch {
	case end < uint64(start):
		return slots, nil
	case end-uint64(start) > maxBlockRange:
		return nil, invalid("Slot range too large; max " + strconv.Itoa(maxBlockRange))
	}
	_, hides := n.faults.lasting(Hide)
	for _, b := range n.ledger.main {
		if b.Slot >= max(start, n.config.FirstBlock) && b.Slot <= min(newest, ledger.Slot(end)) && !(hides && b.Slot%3 == 0) {
			slots = append(slots, b.Slot)
		}
	}
	return slots, nil
}

// MissingWays is how many ways there are to say that a block is missing.
const MissingWays = 5

// missing says that a block that is there is not.
func missing(slot ledger.Slot, how int) *callError {
	s := number(slot)
	switch how % MissingWays {
	case 1:
		return &callError{codeSkippedLongTerm, "Slot " + s + " was skipped, or missing in long-term storage", nil}
	case 2:
		return &callError{codeNotAvailable, "Block not available for slot " + s, nil}
	case 3:
		return &callError{codeStatusUnknown, "Block status not yet available for slot " + s, nil}
	}
	return skipped(slot)
}

func skipped(slot ledger.Slot) *callError {
	return &callError{codeSkipped, "Slot " + number(slot) + " was skipped, or missing due to ledger jump to recent snapshot", nil}
}

// getBlock answers a block: its slot, and options.
func (n *Node) getBlock(c *call) (any, *callError) {
	slot, newest, o, failed := n.slotOf(c)
	switch {
	case failed != nil:
		return nil, failed
	case slot < n.config.FirstBlock:
		return nil, &callError{codeCleanedUp, "Block " + number(slot) + " cleaned up, does not exist on node. First available block: " + number(n.config.FirstBlock), nil}
	case slot > newest:
		return nil, &callError{codeNotAvailable, "Block not available for slot " + number(slot), nil}
	}
	b := n.ledger.mainAt(slot)
	if _, hides := n.faults.lasting(Hide); b == nil || hides && slot%3 == 0 {
		return nil, skipped(slot)
	}
	if f, ok := n.faults.take(Missing); ok {
		if f.How%MissingWays == MissingWays-1 {
			return nil, nil
		}
		return nil, missing(slot, f.How)
	}
	if b.recorded != nil {
		return b.recorded, nil
	}
	return n.ledger.blockAnswer(b, &o)
}

// object is a JSON object.
type object = map[string]any

// blockAnswer spells a block that was made.
func (l *Ledger) blockAnswer(b *block, o *options) (any, *callError) {
	out := object{
		"blockhash": b.Blockhash, "parentSlot": b.ParentSlot, "previousBlockhash": b.PreviousBlockhash.Value,
		"blockTime": nil, "blockHeight": nil,
	}
	if b.Time.Known {
		out["blockTime"] = b.Time.Value
	}
	if b.Height.Known {
		out["blockHeight"] = b.Height.Value
	}
	balances := l.balances(b)
	if o.Rewards == nil || *o.Rewards {
		out["rewards"] = balances.rewards
	}
	switch o.Details {
	case "none":
		return out, nil
	case "signatures":
		signatures := make([]ledger.Signature, len(b.Transactions))
		for i := range b.Transactions {
			signatures[i] = b.Transactions[i].Signature
		}
		out["signatures"] = signatures
		return out, nil
	case "", "full", "accounts":
	default:
		return nil, invalid("Invalid params: unknown variant `" + o.Details + "`")
	}
	transactions := make([]object, len(b.Transactions))
	for i := range b.Transactions {
		t, failed := balances.transaction(i, o)
		if failed != nil {
			return nil, failed
		}
		transactions[i] = t
	}
	out["transactions"] = transactions
	return out, nil
}

// transaction spells the i-th transaction with its metadata.
func (bb *blockBalances) transaction(i int, o *options) (object, *callError) {
	tx := &bb.block.Transactions[i]
	static, writable, readonly, versioned := split(tx)
	out := object{"meta": bb.meta(i)}
	switch {
	case versioned && o.MaxVersion == nil:
		return nil, &callError{codeVersion, "Transaction version (0) is not supported by the requesting client. Please try the request again with the following configuration parameter: \"maxSupportedTransactionVersion\": 0", nil}
	case o.MaxVersion != nil && versioned:
		out["version"] = 0
	case o.MaxVersion != nil:
		out["version"] = "legacy"
	}
	if o.Details == "accounts" {
		out["transaction"], out["meta"] = bb.accounts(i), bb.brief(i)
		return out, nil
	}
	wire := wireTransaction(tx, bb.block.PreviousBlockhash.Value)
	switch o.Encoding {
	case "base64":
		out["transaction"] = []string{base64.StdEncoding.EncodeToString(wire), "base64"}
	case "base58":
		out["transaction"] = []string{base58.Encode(wire), "base58"}
	case "", "json":
		message := object{
			"header":          object{"numRequiredSignatures": 1, "numReadonlySignedAccounts": 0, "numReadonlyUnsignedAccounts": 0},
			"accountKeys":     static,
			"recentBlockhash": bb.block.PreviousBlockhash.Value,
			"instructions":    []object{{"programIdIndex": len(static) - 1, "accounts": []int{0}, "data": base58.Encode(instruction), "stackHeight": 1}},
		}
		if versioned {
			message["addressTableLookups"] = []object{{"accountKey": ledger.Pubkey{}, "writableIndexes": indexes(0, len(writable)), "readonlyIndexes": indexes(1, len(readonly))}}
		}
		out["transaction"] = object{"signatures": []ledger.Signature{tx.Signature}, "message": message}
	default:
		return nil, invalid("Invalid params: unknown encoding `" + o.Encoding + "`")
	}
	return out, nil
}

func indexes(from, count int) []int {
	out := make([]int, count)
	for i := range out {
		out[i] = from + i
	}
	return out
}

// meta spells what the execution of the i-th transaction left behind.
func (bb *blockBalances) meta(i int) object {
	tx := &bb.block.Transactions[i]
	_, writable, readonly, _ := split(tx)
	logs := make([]string, 0, 2)
	if n := len(tx.Accounts); n > 0 {
		program := tx.Accounts[n-1]
		logs = append(logs, fmt.Sprintf("Program %s invoke [1]", program), fmt.Sprintf("Program %s success", program))
	}
	m := bb.brief(i)
	m["innerInstructions"], m["logMessages"], m["rewards"], m["computeUnitsConsumed"] = []object{}, logs, []object{}, 2100
	m["loadedAddresses"] = object{"writable": keysOrNone(writable), "readonly": keysOrNone(readonly)}
	return m
}

// brief spells what balances the i-th transaction left.
func (bb *blockBalances) brief(i int) object {
	tx := &bb.block.Transactions[i]
	m := object{
		"err": nil, "status": object{"Ok": nil}, "fee": tx.Fee.Value,
		"preBalances": bb.lamports(i, bb.pre), "postBalances": bb.lamports(i, bb.post),
		"preTokenBalances": bb.tokens(i, bb.pre), "postTokenBalances": bb.tokens(i, bb.post),
	}
	if !tx.Success.Value {
		failure := json.RawMessage(`{"InstructionError":[0,{"Custom":1}]}`)
		m["err"], m["status"] = failure, object{"Err": failure}
	}
	return m
}

// accounts spells the i-th transaction by its accounts alone.
func (bb *blockBalances) accounts(i int) object {
	tx := &bb.block.Transactions[i]
	static, _, _, _ := split(tx)
	keys := make([]object, len(tx.Accounts))
	for n, k := range tx.Accounts {
		source := "transaction"
		if n >= len(static) {
			source = "lookupTable"
		}
		keys[n] = object{"pubkey": k, "signer": n == 0, "writable": true, "source": source}
	}
	return object{"signatures": []ledger.Signature{tx.Signature}, "accountKeys": keys}
}

func keysOrNone(keys []ledger.Pubkey) []ledger.Pubkey {
	if keys == nil {
		return []ledger.Pubkey{}
	}
	return keys
}
