package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// maxSmall bounds answers that are a number or a list of slots: one of maxListed slots takes 20 bytes and a
// comma each at most, and blanks.
const maxSmall = 2 << 20

// maxSlot is above every slot that a ledger comes to: a number past it is none.
const maxSlot = 1 << 60

// maxTransactionVersion is the newest version of transactions that a node may tell us. A block
// with a newer one is refused whole.
const maxTransactionVersion = 1

// options are the last parameter of a call.
type options map[string]any

// slot returns the newest slot of a commitment.
func (c *client) slot(ctx context.Context, level ledger.Commitment) (ledger.Slot, error) {
	return c.oneSlot(ctx, "getSlot", options{"commitment": level.String()})
}

// firstAvailable returns the first slot whose block the node keeps, 0 where it keeps none.
func (c *client) firstAvailable(ctx context.Context) (ledger.Slot, error) {
	return c.oneSlot(ctx, "getFirstAvailableBlock")
}

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

// slots returns the slots from first to last, both included, that hold blocks of a commitment as
// far as the node knows.
func (c *client) slots(ctx context.Context, first, last ledger.Slot, level ledger.Commitment) ([]ledger.Slot, error) {
	wrong := func(what string) error {
		return c.counted(&callError{method: "getBlocks", cause: garbage, detail: errors.New(what)})
	}
	list, err := call[[]ledger.Slot](ctx, c, maxSmall, "getBlocks", uint64(first), uint64(last), options{"commitment": level.String()})
	switch {
	case err != nil:
		return nil, err
	case list == nil:
		return nil, wrong("there is no list")
	case len(*list) == 0:
		return nil, nil
	case !slices.IsSorted(*list) || len(slices.Compact(slices.Clone(*list))) != len(*list):
		return nil, wrong("the slots are not in order")
	case (*list)[0] < first || (*list)[len(*list)-1] > last:
		return nil, wrong("a slot is out of the range")
	}
	return *list, nil
}

// block returns the confirmed block of a slot. That it is not there is a *callError too, also where
// the node says so by a null.
func (c *client) block(ctx context.Context, slot ledger.Slot) (*ledger.Block, error) {
	details := "full"
	if c.config.Brief {
		details = "accounts"
	}
	j, err := call[nodejson.Block](ctx, c, c.config.MaxBlock, "getBlock", uint64(slot), options{
		"commitment": "confirmed", "encoding": "json", "transactionDetails": details, "rewards": true,
		"maxSupportedTransactionVersion": maxTransactionVersion,
	})
	switch {
	case err != nil:
		return nil, err
	case j == nil:
		return nil, c.counted(&callError{method: "getBlock", cause: absent})
	}
	b, err := j.At(slot)
	if err == nil && b.ParentSlot >= b.Slot && b.Slot != 0 {
		err = errors.New("the slot is not above its parent's")
	}
	if err == nil && len(j.Signatures) > len(j.Transactions) {
		err = nodejson.Missing("transactions")
	}
	if err != nil {
		return nil, c.counted(&callError{method: "getBlock", cause: garbage, detail: err})
	}
	b.Status = ledger.Confirmed
	return b, nil
}

// hash returns the hash of the block of a slot.
func (c *client) hash(ctx context.Context, slot ledger.Slot, level ledger.Commitment) (ledger.Hash, error) {
	j, err := call[nodejson.Block](ctx, c, maxSmall, "getBlock", uint64(slot), options{
		"commitment": level.String(), "transactionDetails": "none", "rewards": false,
		"maxSupportedTransactionVersion": maxTransactionVersion,
	})
	if err != nil {
		return ledger.Hash{}, err
	}
	if j == nil {
		return ledger.Hash{}, c.counted(&callError{method: "getBlock", cause: absent})
	}
	hash, err := nodejson.ParseHash("blockhash", j.Blockhash)
	if err != nil {
		return hash, c.counted(&callError{method: "getBlock", cause: garbage, detail: err})
	}
	return hash, nil
}

// counted counts what is wrong with an answer that was one.
func (c *client) counted(e *callError) error {
	c.fell(e)
	return e
}

// accountList is the result of getMultipleAccounts.
type accountList struct {
	Context *struct {
		Slot *uint64 `json:"slot"`
	} `json:"context"`
	Value []json.RawMessage `json:"value"`
}
