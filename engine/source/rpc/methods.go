package rpc

import (
	"context"
	"errors"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// maxSmall bounds answers that are a number, a list of slots, or what a block is without its transactions.
const maxSmall = 2 << 20

// maxSlot is above every slot that a ledger comes to: a number past it is none.
const maxSlot = 1 << 60

// maxTransactionVersion is the newest version of transactions that a node may tell us, or it would refuse the whole block: the highest
// there can be, since what is read of a transaction is the same in all.
const maxTransactionVersion = 255

// options are the last parameter of a call.
type options map[string]any

// slot returns the newest slot of a commitment.
func (c *client) slot(ctx context.Context, level ledger.Commitment) (ledger.Slot, error) {
	return c.oneSlot(ctx, "getSlot", options{"commitment": level.String()})
}

// oneSlot returns the slot that is the whole answer, 0 with an error.
func (c *client) oneSlot(ctx context.Context, method string, params ...any) (ledger.Slot, error) {
	n, err := call[uint64](ctx, c, maxSmall, method, params...)
	switch {
	case err != nil:
		return 0, err
	case n == nil || *n > maxSlot:
		return 0, c.counted(&callError{method: method, cause: garbage})
	}
	return ledger.Slot(*n), nil
}

// listMethod is how blocks are listed. From a slot below the first block that the node keeps, it lists from that one on (Agave,
// rpc/src/rpc.rs, get_blocks_with_limit).
const listMethod = "getBlocksWithLimit"

// slots returns the first slots from one on that hold blocks of a commitment as far as the node knows, at most so many.
func (c *client) slots(ctx context.Context, first ledger.Slot, most int, level ledger.Commitment) ([]ledger.Slot, error) {
	wrong := func(what string) error {
		return c.counted(&callError{method: listMethod, cause: garbage, detail: errors.New(what)})
	}
	list, err := call[[]ledger.Slot](ctx, c, maxSmall, listMethod, uint64(first), most, options{"commitment": level.String()})
	switch {
	case err != nil:
		return nil, err
	case list == nil:
		return nil, wrong("there is no list")
	case len(*list) > most:
		return nil, wrong("it is longer than was asked for")
	}
	next := first
	for _, slot := range *list {
		if slot < next || slot > maxSlot {
			return nil, wrong("a slot is out of order or out of the range")
		}
		next = slot + 1
	}
	return *list, nil
}

// block returns the confirmed block of a slot.
func (c *client) block(ctx context.Context, slot ledger.Slot) (*ledger.Block, error) {
	details := "full"
	if c.config.Brief {
		details = "accounts"
	}
	j, err := c.getBlock(ctx, slot, c.config.MaxBlock, options{"commitment": "confirmed", "encoding": "json", "transactionDetails": details, "rewards": true})
	if err != nil {
		return nil, err
	}
	b, err := j.At(slot, c.config.Data)
	if err == nil && b.ParentSlot >= b.Slot && b.Slot != 0 {
		err = errors.New("the slot is not above its parent's")
	}
	if err == nil && (j.Transactions == nil || len(j.Signatures) > len(j.Transactions)) {
		err = nodejson.Missing("transactions")
	}
	if err != nil {
		return nil, c.counted(&callError{method: "getBlock", cause: garbage, detail: err})
	}
	c.notKnown(slot, badVersion, j.Unread)
	c.notKnown(slot, untold, j.Untold)
	b.Status = ledger.Confirmed
	return b, nil
}

// notKnown tells that the block of a slot comes without what some transactions wrote.
func (c *client) notKnown(slot ledger.Slot, cause cause, transactions int) {
	if transactions == 0 {
		return
	}
	why := &callError{method: "getBlock", cause: cause}
	c.stats.Failed(why.Kind())
	if _, isTold := c.told.LoadOrStore(cause, true); !isTold {
		c.config.Logger.Warn("what transactions wrote is left out, here and further on", "slot", uint64(slot), "transactions", transactions, "error", why)
	}
}

// hash returns the hash of the block of a slot.
func (c *client) hash(ctx context.Context, slot ledger.Slot, level ledger.Commitment) (ledger.Hash, error) {
	j, err := c.getBlock(ctx, slot, maxSmall, options{"commitment": level.String(), "transactionDetails": "none", "rewards": false})
	if err != nil {
		return ledger.Hash{}, err
	}
	if j.Blockhash == nil {
		return ledger.Hash{}, c.counted(&callError{method: "getBlock", cause: garbage, detail: nodejson.Missing("blockhash")})
	}
	return *j.Blockhash, nil
}

// getBlock returns what the node shows of the block of a slot. That it is not there is a *callError too, also where the node
// says so by a null.
func (c *client) getBlock(ctx context.Context, slot ledger.Slot, maxBytes int, o options) (*nodejson.Block, error) {
	o["maxSupportedTransactionVersion"] = maxTransactionVersion
	j, err := call[nodejson.Block](ctx, c, maxBytes, "getBlock", uint64(slot), o)
	if err == nil && j == nil {
		err = c.counted(&callError{method: "getBlock", cause: absent})
	}
	return j, err
}
