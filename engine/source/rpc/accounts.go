package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
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
	// extendedMint is what that byte says of a mint with extensions.
	extendedMint = 1
	// wholeBytes bounds the data of the mints that are asked for whole in one call.
	wholeBytes = 2 << 20
)

// part is an account as one call tells it.
type part struct {
	write ledger.AccountWrite
	data  []byte
	size  int  // of all its data; 0 where the node does not say
	cut   bool // the data does not tell its facts: what is behind it has to be asked for
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

// accountsAt asks for up to 100 accounts as they stand at one slot. Mints with extensions take a second
// call, as their data does not end where it is cut. What was answered before an error stands.
func (c *client) accountsAt(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment, atLeast ledger.Slot) (b ledger.BaseState, err error) {
	whole := c.config.Data != nil // who owns an account, the answer tells
	slot, parts, err := c.accountsOnce(ctx, keys, level, atLeast, whole)
	if whole && causeOf(err) == tooLarge {
		slot, parts, err = c.accountsOnce(ctx, keys, level, atLeast, false) // their data stays unknown
	}
	if err != nil {
		return b, err
	}
	b.Slot = slot
	var cuts []part
	for _, p := range parts {
		if p.cut {
			cuts = append(cuts, p)
		} else {
			b.Accounts = append(b.Accounts, p.write)
		}
	}
	for len(cuts) > 0 {
		var some []part
		some, cuts = nextWhole(cuts)
		if err := c.complete(ctx, some, level, max(atLeast, slot)); err != nil {
			return b, err
		}
		for i := range some {
			b.Accounts = append(b.Accounts, some[i].write)
		}
	}
	return b, nil
}

// complete teaches accounts that were cut. The node may have got on since it told their heads: those
// stand. Only the extensions are taken of what it tells now, and a mint's are chosen when it is made. If it is not
// the same mint any more, the node has to be asked for all of it again.
func (c *client) complete(ctx context.Context, cuts []part, level ledger.Commitment, atLeast ledger.Slot) error {
	keys := make([]ledger.Pubkey, len(cuts))
	for i := range cuts {
		keys[i] = cuts[i].write.Pubkey
	}
	_, wholes, err := c.accountsOnce(ctx, keys, level, atLeast, true)
	if err != nil {
		return err
	}
	for i := range cuts {
		p, whole := &cuts[i], &wholes[i]
		if !continues(p, whole) {
			return c.counted(&callError{method: "getMultipleAccounts", cause: notYet, detail: errors.New("an account changed meanwhile")})
		}
		p.write.SetTokenFacts(append(p.data[:headBytes:headBytes], whole.data[headBytes:]...))
	}
	return nil
}

// continues reports whether the data of an account, asked for later, is that of which the head was told.
func continues(head, whole *part) bool {
	const decimals, kind = 44, headBytes - 1
	return whole.write.Lamports > 0 && whole.write.Owner == head.write.Owner && len(whole.data) >= headBytes &&
		whole.data[kind] == head.data[kind] && (head.data[kind] != extendedMint || whole.data[decimals] == head.data[decimals])
}

// nextWhole takes as many accounts as may be asked for whole at once.
func nextWhole(cuts []part) (some, rest []part) {
	bytes := 0
	for i := range cuts {
		size := cuts[i].size
		if size == 0 {
			size = wholeBytes
		}
		if bytes += size; i > 0 && bytes > wholeBytes {
			return cuts[:i], cuts[i:]
		}
	}
	return cuts, nil
}

// accountsOnce is one call, for up to 100 keys.
func (c *client) accountsOnce(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment, atLeast ledger.Slot, whole bool) (ledger.Slot, []part, error) {
	o := options{"commitment": level.String(), "encoding": "base64"}
	if atLeast > 0 {
		o["minContextSlot"] = uint64(atLeast)
	}
	if !whole {
		o["dataSlice"] = options{"offset": 0, "length": headBytes}
	}
	list, err := call[accountList](ctx, c, c.config.MaxAccounts, "getMultipleAccounts", keys, o)
	if err != nil {
		return 0, nil, err
	}
	slot, parts, err := c.readAccounts(list, keys, whole)
	switch {
	case err != nil:
		return 0, nil, c.counted(&callError{method: "getMultipleAccounts", cause: garbage, detail: err})
	case slot < atLeast:
		return 0, nil, c.counted(&callError{method: "getMultipleAccounts", cause: notYet})
	}
	return slot, parts, nil
}

// readAccounts reads an answer about keys: as of which slot it is, and each account.
func (c *client) readAccounts(list *accountList, keys []ledger.Pubkey, whole bool) (ledger.Slot, []part, error) {
	switch {
	case list == nil || list.Context == nil || list.Context.Slot == nil || *list.Context.Slot > maxSlot:
		return 0, nil, nodejson.Missing("context")
	case len(list.Value) != len(keys):
		return 0, nil, errors.New("it has not as many accounts as were asked for")
	}
	data := new(nodejson.DataDecoder)
	if whole {
		data.Held = c.config.Data
	}
	defer data.Close()
	parts := make([]part, len(keys))
	for i, text := range list.Value {
		if err := parts[i].read(keys[i], text, whole, data); err != nil {
			return 0, nil, err
		}
	}
	return ledger.Slot(*list.Context.Slot), parts, nil
}

// read reads one account. It is cut where the head of its data does not tell its facts.
func (p *part) read(key ledger.Pubkey, text json.RawMessage, whole bool, decoder *nodejson.DataDecoder) error {
	p.write.Pubkey = key
	if string(text) == "null" {
		return nil
	}
	var a nodejson.Account
	if err := json.Unmarshal(text, &a); err != nil {
		return nodejson.PlainError(err)
	}
	if a.Pubkey.Known && a.Pubkey.Value != key {
		return errors.New("an account is not the one asked for")
	}
	a.Pubkey.Opt = ledger.Some(key)
	w, data, err := a.Write(decoder)
	if err != nil || w.Lamports == 0 {
		return err
	}
	if !a.Owner.Known || data == nil {
		return errors.New("an account has no owner or no data")
	}
	size := len(data)
	if a.Space != nil {
		size = int(min(*a.Space, 1<<30))
		p.size = size
	}
	if size != len(data) && (whole || len(data) != headBytes || size < headBytes) {
		return errors.New("an account's data is not the part that was asked for")
	}
	p.write, p.data = w, data
	switch {
	case whole: // it tells everything
	case isCutMint(w.Owner, data, size, a.Space != nil):
		p.cut = true
	case size == multisigBytes && w.Owner == ledger.Token2022Program:
		p.write.SetTokenFacts(nil) // whatever byte 165 says
	default:
		p.write.SetTokenFacts(data)
	}
	return nil
}

// isCutMint reports whether the head of an account's data does not tell its facts: it may be a mint
// whose extensions go on, or nobody says how long the data is.
func isCutMint(owner ledger.Pubkey, head []byte, size int, sizeKnown bool) bool {
	if owner != ledger.Token2022Program || len(head) < headBytes {
		return false
	}
	if !sizeKnown {
		return true
	}
	return size > len(head) && size != multisigBytes && head[headBytes-1] == extendedMint
}
