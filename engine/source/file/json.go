package file

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// maxValueBytes bounds one JSON value: a block, an account, or a response with a list of
// accounts. Lists at the top of a file are read element by element and have no bound.
const maxValueBytes = 256 << 20

// manyElements and elementBytes bound the lists and objects in a value, because `{},` takes a hundred bytes of memory: there may be so many, and
// one more for each of so many bytes. Recorded blocks have one in 28 bytes at most.
const manyElements, elementBytes = 1 << 20, 16

var (
	errValueTooLong = errors.New("JSON value longer than 256 MiB")
	errTooMany      = errors.New("JSON value of too many lists and objects")
)

// jsonReader turns what a node answered into events: blocks and base state.
type jsonReader struct {
	in   input
	log  *slog.Logger
	data *nodejson.DataDecoder
	out  *sink

	base   *ledger.BaseState // the accounts of a slot that are not emitted yet, nil for none
	dec    *jsontext.Decoder
	number int // of the object that is read, from 1
}

// accountJSON is embedded under a name that does not hide the field beside it.
type accountJSON = nodejson.Account

// object is any JSON object a file may hold, as far as we read it.
type object struct {
	// A response of a node.
	Result jsontext.Value `json:"result"`
	Error  *struct {      // its message is not read: it could say anything
		Code int64 `json:"code"`
	} `json:"error"`
	// A result that says at which slot it holds.
	Context *struct {
		Slot ledger.Slot `json:"slot"`
	} `json:"context"`
	Value jsontext.Value `json:"value"`
	// An account beside its key.
	Account jsontext.Value `json:"account"`

	Slot *ledger.Slot `json:"slot"`
	nodejson.Block
	accountJSON

	// Transaction tells a single transaction, which is no block.
	Transaction jsontext.Value `json:"transaction"`
}

// place is where in the file a value stands, and what the objects around it say of it.
type place struct {
	slot   ledger.Slot
	pubkey nodejson.Key
	depth  int
	listed bool // among others
}

// maxDepth is how deep a value may stand: in a response is its result, in that a list, in it an account beside its key.
const maxDepth = 5

// run reads a list of objects or a sequence of them to the end.
func (j *jsonReader) run(ctx context.Context, r *bufio.Reader) error {
	first, err := r.Peek(1)
	if err != nil {
		return err
	}
	isList := first[0] == '['
	limit := &valueLimit{r: r}
	j.dec = jsontext.NewDecoder(limit, nodejson.AsTold)
	if isList {
		if _, err := j.dec.ReadToken(); err != nil {
			return limit.readError(err)
		}
	}
	for j.number = 1; ; j.number++ {
		limit.bytes, limit.elements = 0, 0
		if isList && j.dec.PeekKind() == ']' {
			break
		}
		text, err := j.dec.ReadValue()
		switch {
		case err == io.EOF && !isList:
			return j.flush(ctx)
		case err != nil:
			err = limit.readError(err)
		default:
			err = j.put(ctx, text, place{})
		}
		if err != nil && (isList || j.number > 1) {
			return fmt.Errorf("entry %d: %w", j.number, err)
		}
		if err != nil {
			return err
		}
	}
	if _, err := j.dec.ReadToken(); err != nil {
		return limit.readError(err)
	}
	if _, err := j.dec.ReadToken(); err != io.EOF {
		return errors.New("something follows the list")
	}
	return j.flush(ctx)
}

// put emits what a value holds: a block or an account, or other values.
func (j *jsonReader) put(ctx context.Context, text jsontext.Value, at place) error {
	switch at.depth++; {
	case at.depth > maxDepth:
		return errors.New("a value inside too many others")
	case text[0] == '[' && at.depth > 1: // those of a file are read one by one
		return j.putList(ctx, text, at)
	case text[0] == 'n':
		return errors.New("null instead of a block or an account")
	}
	var o object
	if err := nodejson.Unmarshal(text, &o); err != nil {
		return err
	}
	if o.Pubkey.Known {
		at.pubkey = o.Pubkey
	}
	if o.Slot != nil {
		at.slot = *o.Slot
	}
	switch {
	case o.Error != nil:
		return fmt.Errorf("the node's error %d instead of a result", o.Error.Code)
	case o.Result != nil:
		return j.put(ctx, o.Result, at)
	case o.Context != nil && len(o.Value) == 0:
		return nodejson.Missing("value")
	case o.Context != nil:
		at.slot = o.Context.Slot
		if o.Value[0] == 'n' { // the node says that there is no such account
			return j.putAccount(ctx, &nodejson.Account{Lamports: new(uint64)}, at)
		}
		return j.put(ctx, o.Value, at)
	case len(o.Account) > 0 && o.Account[0] != 'n':
		return j.put(ctx, o.Account, at)
	case o.Blockhash != nil || o.ParentSlot != nil:
		return j.putBlock(ctx, &o, at)
	case o.Transaction != nil:
		return errors.New("a single transaction, which is neither a block nor an account")
	case o.Lamports != nil:
		return j.putAccount(ctx, &o.accountJSON, at)
	}
	return errors.New("a JSON object that is neither a block nor an account")
}

// putList emits what the values of a list hold.
func (j *jsonReader) putList(ctx context.Context, list jsontext.Value, at place) error {
	var items []jsontext.Value
	if err := nodejson.Unmarshal(list, &items); err != nil {
		return err
	}
	at.listed = true
	for i, item := range items {
		if err := j.put(ctx, item, at); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}

// putAccount adds one account to the base state. Where nothing says its key, the name of the file may.
func (j *jsonReader) putAccount(ctx context.Context, a *nodejson.Account, at place) error {
	if a.Pubkey = at.pubkey; !a.Pubkey.Known && !at.listed {
		a.Pubkey.Opt = keyInName(filepath.Base(j.in.path))
	}
	w, _, err := a.Write(j.data)
	if err != nil {
		return err
	}
	if j.base != nil && (j.base.Slot != at.slot || len(j.base.Accounts) == maxBaseAccounts) {
		if err := j.flush(ctx); err != nil {
			return err
		}
	}
	if j.base == nil {
		j.base = &ledger.BaseState{Slot: at.slot}
	}
	j.base.Accounts = append(j.base.Accounts, w)
	return nil
}

// flush emits the base state.
func (j *jsonReader) flush(ctx context.Context) error {
	state := j.base
	j.base = nil
	if state == nil {
		return nil
	}
	return j.out.put(ctx, state)
}

// putBlock emits one block, after the base state in front of it.
func (j *jsonReader) putBlock(ctx context.Context, o *object, at place) error {
	parent, err := o.Parent()
	if err != nil {
		return err
	}
	// The name of a file can tell the slot of its only block, not of one among others.
	alone := func() bool {
		next := j.dec.PeekKind()
		return !at.listed && j.number == 1 && (next == 0 || next == ']')
	}
	slot, guessed, err := blockSlot(o.Slot, parent, filepath.Base(j.in.path), alone)
	if err != nil {
		return err
	}
	if guessed && !j.out.guessed {
		j.log.Warn("a block does not say its slot: taken to be the one after its parent, here and further on",
			"file", j.in.name(), "slot", uint64(slot))
		j.out.guessed = true
	}
	b, err := o.At(slot, j.data.Held)
	if err != nil {
		return err
	}
	if o.Unread > 0 && !j.out.unread {
		j.log.Warn("transactions are of a version that is not known here: they, and what they wrote, are left out, here and further on",
			"file", j.in.name(), "slot", uint64(slot), "transactions", o.Unread)
		j.out.unread = true
	}
	if (o.Untold > 0 || o.Transactions == nil) && !j.out.untold {
		j.log.Warn("a block does not list its transactions, or not the balances that they left: what they wrote is left out, here and further on",
			"file", j.in.name(), "slot", uint64(slot))
		j.out.untold = true
	}
	if err := j.flush(ctx); err != nil {
		return err
	}
	return j.out.put(ctx, b)
}

// valueLimit ends reading when one value goes on for too long.
type valueLimit struct {
	r               io.Reader
	bytes, elements int   // read of the value
	err             error // other than the end
}

// readError returns what is wrong with the JSON or with reading it.
func (l *valueLimit) readError(err error) error { return cmp.Or(l.err, nodejson.PlainError(err)) }

func (l *valueLimit) Read(p []byte) (int, error) {
	switch {
	case l.bytes >= maxValueBytes:
		l.err = errValueTooLong
	case l.elements > manyElements+l.bytes/elementBytes:
		l.err = errTooMany
	}
	if l.err != nil {
		return 0, l.err
	}
	n, err := l.r.Read(p)
	if err != io.EOF {
		l.err = err
	}
	l.bytes += n
	l.elements += bytes.Count(p[:n], []byte{'{'}) + bytes.Count(p[:n], []byte{'['})
	return n, err
}
