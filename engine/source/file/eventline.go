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
	kind, status, commitment []byte
	slot, parentSlot         ledger.Opt[ledger.Slot]
	blockhash                ledger.Opt[ledger.Hash]
	previousBlockhash        ledger.Opt[ledger.Hash]
	blockTime                ledger.Opt[int64]
	blockHeight              ledger.Opt[uint64]
	transactionCount         ledger.Opt[uint64]
	transactions             []ledger.Transaction
	accounts                 []ledger.AccountWrite
	mints                    []ledger.MintWrite
}

// decodeLine returns the event of a line.
func (d *lineDecoder) decodeLine(line []byte) (event ledger.Event, err error) {
	d.scanner = scanner{line: line, texts: d.texts[:0]}
	l := eventLine{transactions: []ledger.Transaction{}, accounts: []ledger.AccountWrite{}}
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
		return
	}
	d.enter('{', "")
	for d.field() {
		switch string(d.name) {
		case "type":
			l.kind = d.text("type")
		case "slot":
			l.slot = ledger.Some(ledger.Slot(d.uint("slot", 64)))
		case "parent_slot":
			l.parentSlot = ledger.Some(ledger.Slot(d.uint("parent_slot", 64)))
		case "blockhash":
			l.blockhash = d.hash("blockhash")
		case "previous_blockhash":
			l.previousBlockhash = d.hash("previous_blockhash")
		case "block_time":
			var seconds int64
			d.decode("block_time", &seconds)
			l.blockTime = ledger.Some(seconds)
		case "block_height":
			l.blockHeight = ledger.Some(d.uint("block_height", 64))
		case "commitment":
			l.commitment = d.text("commitment")
		case "transaction_count":
			l.transactionCount = ledger.Some(d.uint("transaction_count", 64))
		case "transactions":
			d.readTransactions(l)
		case "accounts":
			d.readAccounts(l)
		case "status":
			l.status = d.text("status")
		default:
			d.raw()
		}
	}
}

func (d *lineDecoder) readTransactions(l *eventLine) {
	l.transactions = l.transactions[:0]
	d.enter('[', "transactions")
	for i := 0; d.item(']'); i++ {
		l.transactions = append(l.transactions, d.readTransaction())
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
		case "accounts":
			d.keys = d.keys[:0]
			for d.enter('[', "accounts"); d.item(']'); {
				d.keys = append(d.keys, d.key("an account key"))
			}
		default:
			d.raw()
		}
	}
	t.Accounts = append(make([]ledger.Pubkey, 0, len(d.keys)), d.keys...)
	var err error
	if t.Signature, err = nodejson.ParseSignature("signature", signature); err != nil {
		d.fail(err)
	}
	return t
}

// hash consumes a block hash.
func (d *lineDecoder) hash(field string) ledger.Opt[ledger.Hash] {
	text := d.text(field)
	h, err := nodejson.ParseHash(field, &text)
	if err != nil {
		d.fail(err)
	}
	return ledger.Some(h)
}

func (l *eventLine) event() (ledger.Event, error) {
	kind := string(l.kind)
	if !l.slot.Known && (kind == "block" || kind == "accounts" || kind == "slot") {
		return nil, nodejson.Missing("slot")
	}
	switch kind {
	case "block":
		return l.block()
	case "accounts":
		return &ledger.BaseState{Slot: l.slot.Value, Accounts: l.accounts, Mints: l.mints}, nil
	case "slot":
		return l.slotStatus()
	}
	return nil, errors.New("type is neither block nor accounts nor slot")
}

// block returns the block of a line. Unless it says its commitment, that comes with later lines.
func (l *eventLine) block() (*ledger.Block, error) {
	switch {
	case !l.parentSlot.Known:
		return nil, nodejson.Missing("parent_slot")
	case !l.blockhash.Known:
		return nil, nodejson.Missing("blockhash")
	}
	listed := uint64(len(l.transactions))
	b := &ledger.Block{
		Slot: l.slot.Value, ParentSlot: l.parentSlot.Value, Blockhash: l.blockhash.Value,
		Time: l.blockTime, Height: l.blockHeight, Status: ledger.Processed, TransactionCount: listed,
		Transactions: l.transactions[:0], Accounts: l.accounts, Mints: l.mints,
	}
	if l.previousBlockhash.Value != (ledger.Hash{}) {
		b.PreviousBlockhash = l.previousBlockhash // zero: the node did not know it
	}
	if l.commitment != nil {
		level, ok := ledger.ParseCommitment(l.commitment)
		if !ok {
			return nil, errors.New("commitment is neither processed nor confirmed nor finalized")
		}
		b.Status = level
	}
	if l.transactionCount.Known {
		b.TransactionCount = l.transactionCount.Value
	}
	for _, t := range l.transactions {
		b.AddTransaction(t)
	}
	return b, checkBlock(b)
}

// slotStatus returns the slot status of a line.
func (l *eventLine) slotStatus() (*ledger.SlotStatus, error) {
	s := &ledger.SlotStatus{Slot: l.slot.Value, Blockhash: l.blockhash}
	switch string(l.status) {
	case "confirmed":
		s.Status = ledger.StatusConfirmed
	case "finalized":
		s.Status = ledger.StatusFinalized
	case "dead":
		s.Status = ledger.StatusDead
	default:
		return nil, errors.New("status is neither confirmed nor finalized nor dead")
	}
	return s, nil
}
