package file

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// eventLine is a line of our own NDJSON: a block, base state ("accounts") or the status of a slot. What is nil is not said.
type eventLine struct {
	Type              string           `json:"type"`
	Slot              *ledger.Slot     `json:"slot"`
	ParentSlot        *ledger.Slot     `json:"parent_slot"`
	Blockhash         *ledger.Hash     `json:"blockhash"`
	PreviousBlockhash ledger.Hash      `json:"previous_blockhash"` // zero: not known
	BlockTime         *int64           `json:"block_time"`
	BlockHeight       *uint64          `json:"block_height"`
	Commitment        *string          `json:"commitment"`
	TransactionCount  *uint64          `json:"transaction_count"`
	Transactions      lineTransactions `json:"transactions"`
	Accounts          lineAccounts     `json:"accounts"`
	Status            string           `json:"status"`
}

// decodeLine returns the event of a line.
func decodeLine(line []byte, data *nodejson.DataDecoder) (ledger.Event, error) {
	l := eventLine{Accounts: lineAccounts{data: data}}
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, nodejson.PlainError(err)
	}
	return l.event()
}

var slotStatuses = map[string]ledger.Status{
	"confirmed": ledger.StatusConfirmed,
	"finalized": ledger.StatusFinalized,
	"dead":      ledger.StatusDead,
}

// event returns the event of a line. A block that does not say its commitment gets it from later lines.
func (l *eventLine) event() (ledger.Event, error) {
	level, err := l.level()
	switch {
	case err != nil:
		return nil, err
	case l.Slot == nil:
		return nil, nodejson.Missing("slot")
	}
	switch l.Type {
	case "block":
		return l.blockAt(level.Value)
	case "accounts":
		if level.Value == ledger.Finalized { // where it is final at once nothing needs to be said
			level = ledger.Opt[ledger.Commitment]{}
		}
		return &ledger.BaseState{Slot: *l.Slot, Level: level, Accounts: l.Accounts.writes, Mints: l.Accounts.mints}, nil
	case "slot":
		status, ok := slotStatuses[l.Status]
		if !ok {
			return nil, errors.New("status is neither confirmed nor finalized nor dead")
		}
		return &ledger.SlotStatus{Slot: *l.Slot, Status: status, Blockhash: nodejson.Optional(l.Blockhash)}, nil
	}
	return nil, errors.New("type is neither block nor accounts nor slot")
}

// level returns the commitment that the line says.
func (l *eventLine) level() (level ledger.Opt[ledger.Commitment], err error) {
	if l.Commitment == nil {
		return level, nil
	}
	if level.Value, level.Known = ledger.ParseCommitment(*l.Commitment); !level.Known {
		err = errors.New("commitment is neither processed nor confirmed nor finalized")
	}
	return level, err
}

// blockAt returns the block of a line, which is of that commitment.
func (l *eventLine) blockAt(level ledger.Commitment) (ledger.Event, error) {
	switch {
	case l.ParentSlot == nil:
		return nil, nodejson.Missing("parent_slot")
	case l.Blockhash == nil:
		return nil, nodejson.Missing("blockhash")
	}
	b := &ledger.Block{
		Slot: *l.Slot, ParentSlot: *l.ParentSlot, Blockhash: *l.Blockhash,
		Time: nodejson.Optional(l.BlockTime), Height: nodejson.Optional(l.BlockHeight), Status: level,
		TransactionCount: uint64(len(l.Transactions)),
		Transactions:     l.Transactions[:0], // the same, when they are stamped
		Accounts:         l.Accounts.writes, Mints: l.Accounts.mints,
	}
	if l.PreviousBlockhash != (ledger.Hash{}) {
		b.PreviousBlockhash = ledger.Some(l.PreviousBlockhash)
	}
	if l.TransactionCount != nil {
		b.TransactionCount = *l.TransactionCount
	}
	for _, t := range l.Transactions {
		b.AddTransaction(t)
	}
	return b, checkBlock(b)
}

// lineTransactions are the transactions of a block, without what the block says of them.
type lineTransactions []ledger.Transaction

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (l *lineTransactions) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var t struct {
		Signature *ledger.Signature `json:"signature"`
		Success   *bool             `json:"success"`
		Fee       *ledger.Lamports  `json:"fee"`
		Err       jsontext.Value    `json:"err"`
		Accounts  []ledger.Pubkey   `json:"accounts"`
	}
	return eachItem(dec, &t, func() error {
		if t.Signature == nil {
			return nodejson.Missing("signature")
		}
		read := ledger.Transaction{
			Signature: *t.Signature, Success: nodejson.Optional(t.Success), Fee: nodejson.Optional(t.Fee), Accounts: t.Accounts,
		}
		if t.Success != nil && !*t.Success {
			read.Err = nodejson.ErrText(t.Err)
		}
		*l = append(*l, read)
		return nil
	})
}

// eachItem reads a list, item by item, so that only what take makes of an item is held. A null is an empty list.
func eachItem[T any](dec *jsontext.Decoder, item *T, take func() error) error {
	if dec.PeekKind() == 'n' {
		return dec.SkipValue()
	}
	start, err := dec.ReadToken()
	switch {
	case err != nil:
		return err
	case start.Kind() != '[':
		return new(json.SemanticError) // of the wrong type
	}
	for dec.PeekKind() != ']' {
		*item = *new(T)
		if err := json.UnmarshalDecode(dec, item); err != nil {
			return err
		}
		if err := take(); err != nil {
			return &json.SemanticError{JSONPointer: dec.StackPointer(), Err: err}
		}
	}
	_, err = dec.ReadToken()
	return err
}
