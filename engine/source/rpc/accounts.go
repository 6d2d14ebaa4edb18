package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

const (
	// headBytes is how much of an account's data is asked for: all of a plain token account or
	// mint, and the byte behind that tells what an extended one is.
	headBytes = 166
	// multisigBytes is the size of a multisig, which byte 165 tells nothing of.
	multisigBytes = 355
	// wholeBytes bounds the data of the mints that are asked for whole in one call.
	wholeBytes = 2 << 20
)

// fetched is what the node answered: accounts as they stood at a slot.
type fetched struct {
	slot   ledger.Slot
	writes []ledger.AccountWrite
}

// cut is an account of which the head does not tell everything.
type cut struct {
	key  ledger.Pubkey
	size int // of its data; 0 where the node does not say
}

// accounts asks for accounts as they stand at a slot not below another. Keys that do not exist are writes
// of 0 lamports. Mints with extensions, whose data does not end where it is cut, are asked for a
// second time and come as answers of their own. What was answered before an error stands.
func (c *client) accounts(ctx context.Context, keys []ledger.Pubkey, atLeast ledger.Slot, maxBytes int64) ([]fetched, error) {
	var (
		mu      sync.Mutex
		results []fetched
		failure error
		calls   sync.WaitGroup
	)
	ask := func(keys []ledger.Pubkey) {
		f, cuts, err := c.accountsOnce(ctx, keys, atLeast, false, maxBytes)
		for len(cuts) > 0 && err == nil {
			if len(f.writes) > 0 {
				mu.Lock()
				results = append(results, f)
				mu.Unlock()
			}
			var part []ledger.Pubkey
			part, cuts = nextWhole(cuts)
			f, _, err = c.accountsOnce(ctx, part, max(atLeast, f.slot), true, maxBytes)
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			results = append(results, f)
		} else if failure == nil {
			failure = err
		}
	}
	for len(keys) > 0 {
		n := min(len(keys), ledger.MaxFetchKeys)
		part := keys[:n]
		keys = keys[n:]
		calls.Go(func() { ask(part) })
	}
	calls.Wait()
	return results, failure
}

// nextWhole takes as many accounts as may be asked for whole at once.
func nextWhole(cuts []cut) (keys []ledger.Pubkey, rest []cut) {
	bytes := 0
	for i, k := range cuts {
		size := k.size
		if size == 0 {
			size = wholeBytes
		}
		if bytes += size; i > 0 && bytes > wholeBytes {
			return keys, cuts[i:]
		}
		keys = append(keys, k.key)
	}
	return keys, nil
}

// accountsOnce is one call, for up to 100 keys.
func (c *client) accountsOnce(ctx context.Context, keys []ledger.Pubkey, atLeast ledger.Slot, whole bool, maxBytes int64) (f fetched, cuts []cut, err error) {
	o := options{"commitment": "confirmed", "encoding": "base64"}
	if atLeast > 0 {
		o["minContextSlot"] = uint64(atLeast)
	}
	if !whole {
		o["dataSlice"] = options{"offset": 0, "length": headBytes}
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].String()
	}
	list, err := call[accountList](ctx, c, maxBytes, "getMultipleAccounts", names, o)
	if err != nil {
		return f, nil, err
	}
	f, cuts, err = readAccounts(list, keys, whole)
	if err == nil && f.slot < atLeast {
		return f, nil, c.counted(&callError{method: "getMultipleAccounts", cause: notYet})
	}
	if err != nil {
		err = c.counted(&callError{method: "getMultipleAccounts", cause: garbage, detail: err})
	}
	return f, cuts, err
}

// readAccounts reads an answer about keys.
func readAccounts(list *accountList, keys []ledger.Pubkey, whole bool) (f fetched, cuts []cut, err error) {
	switch {
	case list == nil || list.Context == nil || list.Context.Slot == nil:
		return f, nil, nodejson.Missing("context")
	case len(list.Value) != len(keys):
		return f, nil, errors.New("it has not as many accounts as were asked for")
	}
	f.slot = ledger.Slot(*list.Context.Slot)
	data := new(nodejson.DataDecoder)
	defer data.Close()
	for i, text := range list.Value {
		w, size, isCut, err := readAccount(keys[i], text, whole, data)
		switch {
		case err != nil:
			return f, nil, err
		case isCut:
			cuts = append(cuts, cut{keys[i], size})
		default:
			f.writes = append(f.writes, w)
		}
	}
	return f, cuts, nil
}

// readAccount reads one account. It is cut where the head of its data does not tell its facts.
func readAccount(key ledger.Pubkey, text json.RawMessage, whole bool, decoder *nodejson.DataDecoder) (w ledger.AccountWrite, size int, isCut bool, err error) {
	w.Pubkey = key
	if string(text) == "null" {
		return w, 0, false, nil
	}
	var a nodejson.Account
	if err := json.Unmarshal(text, &a); err != nil {
		return w, 0, false, nodejson.PlainError(err)
	}
	if a.Pubkey.Known && a.Pubkey.Value != key {
		return w, 0, false, errors.New("an account is not the one asked for")
	}
	a.Pubkey.Opt = ledger.Some(key)
	text, a.Data = a.Data, nil
	if w, err = a.Write(decoder); err != nil || w.Lamports == 0 {
		return ledger.AccountWrite{Pubkey: key}, 0, false, err
	}
	if !a.Owner.Known || len(text) == 0 || string(text) == "null" {
		return w, 0, false, errors.New("an account has no owner or no data")
	}
	data, err := decoder.Decode(text)
	if err != nil {
		return w, 0, false, err
	}
	size = len(data)
	if a.Space != nil {
		size = int(min(*a.Space, 1<<30))
	}
	if size != len(data) && (whole || len(data) != headBytes || size < headBytes) {
		return w, 0, false, errors.New("an account's data is not the part that was asked for")
	}
	if !whole && isCutMint(w.Owner, data, size, a.Space != nil) {
		return w, size, true, nil
	}
	if size == multisigBytes && w.Owner == ledger.Token2022Program {
		data = nil // whatever byte 165 says
	}
	w.TeachData(data)
	return w, size, false, nil
}

// isCutMint reports whether the head of an account's data does not tell its facts: it may be a mint
// whose extensions go on, or nobody says how long the data is.
func isCutMint(owner ledger.Pubkey, head []byte, size int, sizeKnown bool) bool {
	if owner != ledger.Token2022Program || len(head) < headBytes {
		return false
	}
	const extendedMint = 1
	if !sizeKnown {
		return true
	}
	return size > len(head) && size != multisigBytes && head[headBytes-1] == extendedMint
}
