package rpc

import (
	"errors"
	"fmt"
	"math"

	"github.com/valyala/fastjson"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
)

const (
	maxSlots        = 500_000 // that a list of slots may reach over, as in Agave
	slotBytes       = 8 + 21  // of a slot while it is listed, and of its text
	signatureBytes  = 192     // of a signature while it is listed
	keyText         = 64      // of a key in a list
	namedBytes      = 1024    // of a transaction and the accounts that it names, likewise; its text is extra
	blockSignatures = 4096    // of a large block
)

// absentBlock returns the error of a block that is not held.
func (c *call) absentBlock(slot ledger.Slot, err error) error {
	absent, ok := errors.AsType[*ledger.NotFoundError](err)
	if !ok {
		return err
	}
	switch absent.Absence {
	case ledger.SlotNotYetProduced, ledger.NoBlockYet:
		return &callError{code: codeNotAvailable, message: fmt.Sprintf("Block not available for slot %d", slot)}
	case ledger.SlotSkipped:
		return &callError{code: codeSkipped, message: fmt.Sprintf("Slot %d was skipped: no block was produced in it", slot)}
	case ledger.SlotPruned:
		first, err := c.firstBlock()
		if err != nil {
			return err
		}
		return cleanedUp(slot, first)
	}
	return elsewhere(codeSkipped, "Slot %d is not held: it was skipped, or is before what this node has followed", slot)
}

// cleanedUp says in the words of Agave, which clients match on, that a block was held once, or others from it on.
func cleanedUp(slot, first ledger.Slot) error {
	return elsewhere(codeCleanedUp, "Block %d cleaned up, does not exist on node. First available block: %d", slot, first)
}

// block answers a block as far as the ledger has it: its transactions with the accounts that they name at most. It never has rewards. Where another node
// can be asked, it is asked for what is held in part.
func (c *call) block(dst []byte) ([]byte, error) {
	slot := c.slot(0, "slot")
	if v := c.param(1); v != nil && v.Type() == fastjson.TypeString {
		if c.transactionEncoding(v); c.wrong != nil {
			return dst, c.wrong
		}
		return dst, errWholeBlock // the configuration of old: an encoding, and so of whole transactions
	}
	config := c.config(1)
	c.confirmedAtLeast()
	c.transactionEncoding(member(config, "encoding"))
	rewards := c.isSet(config, "rewards")
	if v := member(config, "maxSupportedTransactionVersion"); v != nil {
		if n, err := v.Uint(); err != nil || n > math.MaxUint8 {
			c.bad("maxSupportedTransactionVersion must be an integer from 0 to 255")
		}
	}
	details := c.word(member(config, "transactionDetails"), "transactionDetails", "full", "full", "accounts", "signatures", "none")
	bytes := 0
	switch {
	case c.wrong != nil:
		return dst, c.wrong
	case details == "full", details == "accounts" && len(c.door.upstreams) > 0:
		return dst, errWholeBlock
	case rewards && len(c.door.upstreams) > 0:
		return dst, errRewards
	case details == "accounts":
		c.query.Parts, bytes = ledger.WholeBlock, blockSignatures*namedBytes
	case details == "signatures":
		c.query.Parts, bytes = ledger.SignaturesOnly, blockSignatures*signatureBytes
	}
	if err := c.x.Reserve(bytes); err != nil {
		return dst, err
	}
	a, v, err := c.door.config.Ledger.Block(c.query, slot)
	if err = c.from(v, err); err != nil {
		return dst, c.absentBlock(slot, err)
	}
	b := a.Block
	if lacking := b.TransactionCount > uint64(len(b.Transactions)); lacking && details == "signatures" && len(c.door.upstreams) > 0 {
		return dst, elsewhere(codeExcluded, "the transactions of block %d are not all held here", slot)
	}
	dst = appendBlock(dst, b)
	switch details {
	case "accounts":
		dst, err = c.appendTransactions(append(dst, `,"transactions":[`...), b)
		dst = append(dst, ']')
	case "signatures":
		dst = append(c.appendSignatures(append(dst, `,"signatures":[`...), b), ']')
	}
	return append(dst, '}'), err
}

// transactionEncoding refuses what is no encoding of transactions. What is answered from here is the same in all.
func (c *call) transactionEncoding(v *fastjson.Value) {
	c.word(v, "encoding", "json", "json", asParsed, asBase58, asBase64, asBinary)
}

// What only nodes with whole transactions, and with rewards, can answer.
var (
	errWholeBlock = elsewhere(codeMethod, "Method not found: this node holds no instructions and answers transactionDetails none, signatures and accounts")
	errRewards    = elsewhere(codeMethod, "Method not found: this node holds no rewards and answers blocks without them")
)

// appendBlock appends what a block is besides its transactions, without the end of the object.
func appendBlock(dst []byte, b *ledger.Block) []byte {
	dst = encode.AppendKey(dst, `{"blockhash":`, (*ledger.Pubkey)(&b.Blockhash))
	dst = encode.AppendKey(dst, `,"previousBlockhash":`, (*ledger.Pubkey)(&b.PreviousBlockhash.Value)) // all ones where it is not known, as in Agave
	dst = encode.AppendNumber(dst, `,"parentSlot":`, b.ParentSlot)
	return encode.AppendOpt(encode.AppendOpt(dst, `,"blockTime":`, b.Time, appendSeconds), `,"blockHeight":`, b.Height, encode.Number)
}

func (c *call) appendSignatures(dst []byte, b *ledger.Block) []byte {
	list := encode.List{Turn: c.door.config.Turn}
	for i := range b.Transactions {
		dst = append(list.Next(dst), '"')
		dst = append(b.Transactions[i].Signature.AppendBase58(dst), '"')
	}
	return dst
}

// appendTransactions appends the transactions of a block as Agave lists their accounts, without what no source tells: balances, other signatures than
// the first, and what accounts are to a transaction, but for the one that pays.
func (c *call) appendTransactions(dst []byte, b *ledger.Block) (_ []byte, err error) {
	list := encode.List{Turn: c.door.config.Turn}
	for i := range b.Transactions {
		t := &b.Transactions[i]
		if dst, err = c.x.Extend(dst, namedBytes+2*len(t.Err)+len(t.Accounts)*keyText); err != nil {
			return dst, err
		}
		dst = append(list.Next(dst), `{"transaction":{"signatures":["`...)
		dst = append(t.Signature.AppendBase58(dst), `"],"accountKeys":[`...)
		var keys encode.List
		for n := range t.Accounts {
			dst = encode.AppendKey(keys.Next(dst), `{"pubkey":`, &t.Accounts[n])
			if n == 0 {
				dst = append(dst, `,"signer":true,"writable":true,"source":"transaction"`...)
			}
			dst = append(dst, '}')
		}
		dst = append(dst, `]},"meta":`...)
		if !t.Success.Known {
			dst = append(dst, `null}`...)
			continue
		}
		dst = appendStatusMembers(append(dst, '{'), t)
		if t.Fee.Known {
			dst = encode.AppendNumber(dst, `,"fee":`, t.Fee.Value)
		}
		dst = append(dst, `}}`...)
	}
	return dst, nil
}

func (c *call) blockTime(dst []byte) ([]byte, error) {
	slot := c.slot(0, "slot")
	if c.wrong != nil {
		return dst, c.wrong
	}
	c.query.Commitment = ledger.Processed
	a, v, err := c.door.config.Ledger.Block(c.query, slot)
	if err = c.from(v, err); err != nil {
		return dst, c.absentBlock(slot, err)
	}
	return encode.AppendOpt(dst, "", a.Block.Time, appendSeconds), nil
}

// blocks answers the slots from one to another that have blocks. As in Agave the second may be left out, which asks for as many as may be, and then
// the configuration may be in its place.
func (c *call) blocks(dst []byte) ([]byte, error) {
	from := c.slot(0, "startSlot")
	to, config := from+maxSlots, 2
	if v := c.param(1); v != nil && v.Type() == fastjson.TypeObject {
		config = 1
	} else if v != nil {
		to = c.slot(1, "endSlot")
	}
	c.config(config)
	c.confirmedAtLeast()
	if _, err := c.newest(); err != nil {
		return dst, err
	}
	if to = min(to, c.view.Tip().Slot); to > from && to-from > maxSlots {
		return dst, badParams("the slots may reach over %d at most", maxSlots)
	}
	return c.appendSlots(dst, from, to, maxSlots+1)
}

func (c *call) blocksWithLimit(dst []byte) ([]byte, error) {
	from, limit := c.slot(0, "startSlot"), c.number(c.param(1), "limit")
	if limit > maxSlots {
		c.bad("limit may be %d at most", maxSlots)
	}
	c.config(2)
	c.confirmedAtLeast()
	if _, err := c.newest(); err != nil {
		return dst, err
	}
	return c.appendSlots(dst, from, c.view.Tip().Slot, int(limit))
}

// appendSlots appends the slots that have blocks.
func (c *call) appendSlots(dst []byte, from, to ledger.Slot, limit int) ([]byte, error) {
	if from > to || limit == 0 {
		return append(dst, `[]`...), nil
	}
	if err := c.x.Reserve(min(int(to-from)+1, limit) * slotBytes); err != nil {
		return dst, err
	}
	p, v, err := c.door.config.Ledger.Slots(c.query, from, to, limit)
	if err = c.from(v, err); err != nil {
		return dst, err
	}
	if from < p.HistoryFrom {
		return dst, cleanedUp(from, p.HistoryFrom)
	}
	dst = append(dst, '[')
	list := encode.List{Turn: c.door.config.Turn}
	for _, slot := range p.Slots {
		dst = encode.AppendNumber(list.Next(dst), "", slot)
	}
	return append(dst, ']'), nil
}

// firstBlock returns the slot of the oldest block that is held.
func (c *call) firstBlock() (ledger.Slot, error) {
	c.query.Commitment = ledger.Finalized
	p, v, err := c.door.config.Ledger.Slots(c.query, 0, math.MaxUint64, 1)
	if err = c.from(v, err); err == nil && len(p.Slots) == 0 {
		err = &callError{code: codeNotAvailable, message: "Block not available: this node holds none yet"}
	}
	if err != nil {
		return 0, err
	}
	return p.Slots[0], nil
}

func (c *call) firstAvailableBlock(dst []byte) ([]byte, error) {
	slot, err := c.firstBlock()
	return encode.AppendNumber(dst, "", slot), err
}
