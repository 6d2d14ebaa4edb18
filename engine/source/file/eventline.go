package file

import (
	"encoding/json"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// lineDecoder turns lines of our own NDJSON into events. It keeps the room of its lists from line to line.
type lineDecoder struct {
	scanner
	data *nodejson.DataDecoder
	keys []ledger.Pubkey // of the transaction that is read
}

// eventLine is what a line says: of a block, of base state ("accounts") or of the status of a slot.
type eventLine struct {
	kind, status       []byte
	hasSlot, hasParent bool
	hash               ledger.Opt[ledger.Hash]
	transactionCount   ledger.Opt[uint64]
	level              ledger.Opt[ledger.Commitment]
	block              *ledger.Block // what the others say too, and all that is listed
}

// decodeLine returns the event of a line.
func (d *lineDecoder) decodeLine(line []byte) (ledger.Event, error) {
	d.scanner = scanner{line: line}
	l := eventLine{block: &ledger.Block{Transactions: []ledger.Transaction{}, Accounts: []ledger.AccountWrite{}}}
	d.readLine(&l)
	if d.peek(); d.at < len(line) {
		d.fail(errSyntax)
	}
	if d.err == nil {
		return l.event()
	}
	// A line that is not JSON is called so, whatever else is wrong with it.
	if err := json.Unmarshal(line, new(unread)); err != nil {
		return nil, nodejson.PlainError(err)
	}
	return nil, d.err
}

func (d *lineDecoder) readLine(l *eventLine) {
	if d.peek() != '{' {
		d.fail(errors.New("not a JSON object of the recorded forms"))
	}
	b := l.block
	d.enter('{', "")
	for d.field() {
		switch string(d.name) {
		case "type":
			l.kind = d.text("type")
		case "slot":
			b.Slot, l.hasSlot = ledger.Slot(d.uint("slot", 64)), true
		case "parent_slot":
			b.ParentSlot, l.hasParent = ledger.Slot(d.uint("parent_slot", 64)), true
		case "blockhash":
			l.hash = ledger.Some(d.hash("blockhash"))
		case "previous_blockhash":
			h := d.hash("previous_blockhash")
			b.PreviousBlockhash = ledger.Opt[ledger.Hash]{Value: h, Known: h != ledger.Hash{}} // zero: not known
		case "block_time":
			b.Time.Known = true
			d.decode("block_time", &b.Time.Value)
		case "block_height":
			b.Height = ledger.Some(d.uint("block_height", 64))
		case "commitment":
			var ok bool
			if b.Status, ok = ledger.ParseCommitment(d.text("commitment")); !ok {
				d.fail(errors.New("commitment is neither processed nor confirmed nor finalized"))
			}
			l.level = ledger.Some(b.Status)
		case "transaction_count":
			l.transactionCount = ledger.Some(d.uint("transaction_count", 64))
		case "transactions":
			d.readTransactions(b)
		case "accounts":
			d.readAccounts(b)
		case "status":
			l.status = d.text("status")
		default:
			d.raw()
		}
	}
}

func (d *lineDecoder) readTransactions(b *ledger.Block) {
	b.Transactions = b.Transactions[:0]
	d.enter('[', "transactions")
	front := d.at
	for i := 0; d.item(']'); i++ {
		b.Transactions = appendItem(&d.scanner, front, b.Transactions, d.readTransaction())
		if d.err != nil {
			d.err = fmt.Errorf("transaction %d: %w", i, d.err)
		}
	}
}

// readTransaction reads a transaction, without what its block says.
func (d *lineDecoder) readTransaction() (t ledger.Transaction) {
	signature := []byte(nil)
	d.keys = d.keys[:0]
	d.enter('{', "transactions")
	for d.field() {
		switch string(d.name) {
		case "signature":
			signature = d.text("signature")
		case "success":
			t.Success = ledger.Some(d.bool("success"))
		case "fee":
			t.Fee = ledger.Some(ledger.Lamports(d.uint("fee", 64)))
		case "err":
			t.Err = nodejson.ErrText(d.raw())
		case "accounts":
			d.keys = d.keys[:0]
			for d.enter('[', "accounts"); d.item(']'); {
				d.keys = append(d.keys, d.key("an account key"))
			}
		default:
			d.raw()
		}
	}
	if !t.Success.Known || t.Success.Value {
		t.Err = ""
	}
	t.Accounts = append(make([]ledger.Pubkey, 0, len(d.keys)), d.keys...)
	var err error
	if t.Signature, err = nodejson.ParseSignature("signature", signature); err != nil {
		d.fail(err)
	}
	return t
}

func (d *lineDecoder) hash(field string) ledger.Hash {
	text := d.text(field)
	h, err := nodejson.ParseHash(field, &text)
	if err != nil {
		d.fail(err)
	}
	return h
}

var slotStatuses = map[string]ledger.Status{
	"confirmed": ledger.StatusConfirmed,
	"finalized": ledger.StatusFinalized,
	"dead":      ledger.StatusDead,
}

// event returns the event of a line. A block that does not say its commitment gets it from later lines.
func (l *eventLine) event() (ledger.Event, error) {
	b := l.block
	kind := string(l.kind)
	switch {
	case kind != "block" && kind != "accounts" && kind != "slot":
		return nil, errors.New("type is neither block nor accounts nor slot")
	case !l.hasSlot:
		return nil, nodejson.Missing("slot")
	case kind == "accounts":
		if l.level.Value == ledger.Finalized { // where it is final at once nothing needs to be said
			l.level = ledger.Opt[ledger.Commitment]{}
		}
		return &ledger.BaseState{Slot: b.Slot, Level: l.level, Accounts: b.Accounts, Mints: b.Mints}, nil
	case kind == "slot":
		status, ok := slotStatuses[string(l.status)]
		if !ok {
			return nil, errors.New("status is neither confirmed nor finalized nor dead")
		}
		return &ledger.SlotStatus{Slot: b.Slot, Status: status, Blockhash: l.hash}, nil
	case !l.hasParent:
		return nil, nodejson.Missing("parent_slot")
	case !l.hash.Known:
		return nil, nodejson.Missing("blockhash")
	}
	b.Blockhash = l.hash.Value
	b.TransactionCount = uint64(len(b.Transactions))
	if l.transactionCount.Known {
		b.TransactionCount = l.transactionCount.Value
	}
	listed := b.Transactions
	b.Transactions = listed[:0]
	for _, t := range listed {
		b.AddTransaction(t)
	}
	return b, checkBlock(b)
}
