package file

import (
	"encoding/json"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// eventLine is one line of our own NDJSON: a block, base state ("accounts") or the status of
// a slot. Fields that are absent or null are unknown; fields that it does not name are
// not read.
type eventLine[T nodejson.Text] struct {
	Type T       `json:"type"`
	Slot *uint64 `json:"slot"`

	ParentSlot        *uint64              `json:"parent_slot"`
	Blockhash         *T                   `json:"blockhash"`
	PreviousBlockhash *T                   `json:"previous_blockhash"`
	BlockTime         *int64               `json:"block_time"`
	BlockHeight       *uint64              `json:"block_height"`
	Commitment        *T                   `json:"commitment"`        // what the source claims as the block arrives
	TransactionCount  *uint64              `json:"transaction_count"` // where not all are listed
	Transactions      []lineTransaction[T] `json:"transactions"`
	Accounts          []lineAccount[T]     `json:"accounts"`

	Status T `json:"status"`
}

// lineTransaction is a transaction of an event line.
type lineTransaction[T nodejson.Text] struct {
	Signature T       `json:"signature"`
	Success   *bool   `json:"success"`
	Fee       *uint64 `json:"fee"`
	Accounts  []T     `json:"accounts"`
}

// decodeLine returns the event of one line, whatever way it is written.
func decodeLine(line []byte, data *nodejson.DataDecoder) (ledger.Event, error) {
	var e eventLine[string]
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, nodejson.PlainError(err)
	}
	event, err := e.event(len(e.Transactions))
	if err != nil {
		return nil, err
	}
	switch event := event.(type) {
	case *ledger.Block:
		for i := range e.Transactions {
			t, err := e.Transactions[i].transaction()
			if err != nil {
				return nil, fmt.Errorf("transaction %d: %w", i, err)
			}
			event.AddTransaction(t)
		}
		event.Accounts, event.Mints, err = writes(e.Accounts, data)
	case *ledger.BaseState:
		event.Accounts, event.Mints, err = writes(e.Accounts, data)
	}
	return event, err
}

// event returns the event of a line without its accounts and without its transactions, of
// which so many are listed.
func (e *eventLine[T]) event(listed int) (ledger.Event, error) {
	kind := string(e.Type)
	if e.Slot == nil && (kind == "block" || kind == "accounts" || kind == "slot") {
		return nil, nodejson.Missing("slot")
	}
	switch kind {
	case "block":
		return e.block(listed)
	case "accounts":
		return &ledger.BaseState{Slot: ledger.Slot(*e.Slot)}, nil
	case "slot":
		return e.status()
	}
	return nil, errors.New("type is neither block nor accounts nor slot")
}

// block returns the block of a line. Unless it says its commitment, that comes with later
// lines.
func (e *eventLine[T]) block(listed int) (*ledger.Block, error) {
	if e.ParentSlot == nil {
		return nil, nodejson.Missing("parent_slot")
	}
	hash, err := nodejson.ParseHash("blockhash", e.Blockhash)
	if err != nil {
		return nil, err
	}
	previous, err := nodejson.ParsePreviousHash("previous_blockhash", e.PreviousBlockhash)
	if err != nil {
		return nil, err
	}
	b := &ledger.Block{
		Slot: ledger.Slot(*e.Slot), ParentSlot: ledger.Slot(*e.ParentSlot),
		Blockhash: hash, PreviousBlockhash: previous,
		Time: nodejson.Optional(e.BlockTime), Height: nodejson.Optional(e.BlockHeight),
		Status:           ledger.Processed,
		TransactionCount: uint64(listed),
		Transactions:     make([]ledger.Transaction, 0, listed),
	}
	if err := checkSlotOrder(b.Slot, b.ParentSlot); err != nil {
		return nil, err
	}
	if e.Commitment != nil {
		level, ok := ledger.ParseCommitment(*e.Commitment)
		if !ok {
			return nil, errors.New("commitment is neither processed nor confirmed nor finalized")
		}
		b.Status = level
	}
	if e.TransactionCount != nil {
		b.TransactionCount = *e.TransactionCount
	}
	return b, checkTransactionCount(b.TransactionCount, listed)
}

// transaction returns the transaction, without what its block says.
func (l *lineTransaction[T]) transaction() (t ledger.Transaction, err error) {
	t.Fee, t.Success = nodejson.Optional((*ledger.Lamports)(l.Fee)), nodejson.Optional(l.Success)
	if t.Signature, err = nodejson.ParseSignature("signature", l.Signature); err != nil {
		return t, err
	}
	t.Accounts, err = nodejson.ParseKeys(make([]ledger.Pubkey, 0, len(l.Accounts)), "an account key", l.Accounts)
	return t, err
}

// checkTransactionCount returns an error if a block lists more transactions than it counts.
func checkTransactionCount(count uint64, listed int) error {
	if count < uint64(listed) {
		return errors.New("transaction_count is below the number of transactions")
	}
	return nil
}

// status returns the slot status of a line.
func (e *eventLine[T]) status() (*ledger.SlotStatus, error) {
	s := &ledger.SlotStatus{Slot: ledger.Slot(*e.Slot)}
	switch string(e.Status) {
	case "confirmed":
		s.Status = ledger.StatusConfirmed
	case "finalized":
		s.Status = ledger.StatusFinalized
	case "dead":
		s.Status = ledger.StatusDead
	default:
		return nil, errors.New("status is neither confirmed nor finalized nor dead")
	}
	if e.Blockhash != nil {
		h, err := nodejson.ParseHash("blockhash", e.Blockhash)
		if err != nil {
			return nil, err
		}
		s.Blockhash = ledger.Some(h)
	}
	return s, nil
}
