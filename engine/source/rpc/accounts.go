package rpc

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// headBytes is how much of an account's data is asked for. It holds all of a token account and of a multisig, and of a mint the extensions
// that say whether its amounts are scaled: these are chosen when it is made, so they stand in front of the metadata, whose length may change.
const headBytes = 4 << 10

// accountList is the result of getMultipleAccounts.
type accountList struct {
	Context *struct {
		Slot *uint64 `json:"slot"`
	} `json:"context"`
	Value []jsontext.Value `json:"value"`
}

// accounts asks for accounts as they stand at a level, at a slot not below another. Keys that do not exist are writes
// of 0 lamports. Of 100 keys at a time all are told as of one slot. What was answered before an error stands.
func (c *client) accounts(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment, atLeast ledger.Slot) ([]ledger.BaseState, error) {
	chunks := slices.Collect(slices.Chunk(keys, ledger.MaxFetchKeys))
	results, failures := make([]ledger.BaseState, len(chunks)), make([]error, len(chunks))
	var calls sync.WaitGroup
	for i, keys := range chunks {
		calls.Go(func() { results[i], failures[i] = c.accountsAt(ctx, keys, level, atLeast) })
	}
	calls.Wait()
	return results, cmp.Or(failures...)
}

// accountsAt asks for up to 100 accounts as they stand at one slot, with their data where data is held: who owns an account, the answer
// tells. Data that is too large together stays unknown.
func (c *client) accountsAt(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment, atLeast ledger.Slot) (ledger.BaseState, error) {
	whole := c.config.Data != nil
	state, err := c.accountsOnce(ctx, keys, level, atLeast, whole)
	if whole && causeOf(err) == tooLarge {
		return c.accountsOnce(ctx, keys, level, atLeast, false)
	}
	return state, err
}

// accountsOnce is one call, for up to 100 keys.
func (c *client) accountsOnce(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment, atLeast ledger.Slot, whole bool) (state ledger.BaseState, err error) {
	o := options{"commitment": level.String(), "encoding": "base64"}
	if atLeast > 0 {
		o["minContextSlot"] = uint64(atLeast)
	}
	if !whole {
		o["dataSlice"] = options{"offset": 0, "length": headBytes}
	}
	list, err := call[accountList](ctx, c, c.config.MaxAccounts, "getMultipleAccounts", keys, o)
	if err != nil {
		return state, err
	}
	state, err = c.readAccounts(list, keys, whole)
	switch {
	case err != nil:
		return state, c.counted(&callError{method: "getMultipleAccounts", cause: garbage, detail: err})
	case state.Slot < atLeast:
		return ledger.BaseState{}, c.counted(&callError{method: "getMultipleAccounts", cause: notYet})
	}
	return state, nil
}

// readAccounts reads an answer about keys.
func (c *client) readAccounts(list *accountList, keys []ledger.Pubkey, whole bool) (state ledger.BaseState, err error) {
	switch {
	case list == nil || list.Context == nil || list.Context.Slot == nil || *list.Context.Slot > maxSlot:
		return state, nodejson.Missing("context")
	case len(list.Value) != len(keys):
		return state, errors.New("it has not as many accounts as were asked for")
	}
	data := new(nodejson.DataDecoder)
	if whole {
		data.Held = c.config.Data
	}
	defer data.Close()
	accounts := make([]ledger.AccountWrite, len(keys))
	for i, text := range list.Value {
		if accounts[i], err = readAccount(keys[i], text, whole, data); err != nil {
			return state, err
		}
	}
	return ledger.BaseState{Slot: ledger.Slot(*list.Context.Slot), Accounts: accounts}, nil
}

// readAccount reads one account, of whose data the node was asked for the whole or for the head.
func readAccount(key ledger.Pubkey, text jsontext.Value, whole bool, decoder *nodejson.DataDecoder) (ledger.AccountWrite, error) {
	none := ledger.AccountWrite{Pubkey: key}
	if string(text) == "null" {
		return none, nil
	}
	var a nodejson.Account
	if err := nodejson.Unmarshal(text, &a); err != nil {
		return none, err
	}
	if a.Pubkey.Known && a.Pubkey.Value != key {
		return none, errors.New("an account is not the one asked for")
	}
	a.Pubkey.Opt = ledger.Some(key)
	w, data, err := a.Write(decoder)
	if err != nil || w.Lamports == 0 {
		return none, err
	}
	if !a.Owner.Known || data == nil {
		return none, errors.New("an account has no owner or no data")
	}
	size := uint64(len(data))
	if isCut := a.Space != nil && *a.Space != size; isCut && (whole || size != headBytes || *a.Space < headBytes) {
		return none, errors.New("an account's data is not the part that was asked for")
	}
	w.SetTokenFacts(data)
	return w, nil
}
