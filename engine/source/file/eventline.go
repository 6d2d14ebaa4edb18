package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

// eventLine is one line of our own NDJSON: a block, base state ("accounts") or the status of
// a slot. Fields that are absent or null are unknown; fields that it does not name are
// not read.
type eventLine struct {
	Type string  `json:"type"`
	Slot *uint64 `json:"slot"`

	ParentSlot        *uint64           `json:"parent_slot"`
	Blockhash         *string           `json:"blockhash"`
	PreviousBlockhash *string           `json:"previous_blockhash"`
	BlockTime         *int64            `json:"block_time"`
	BlockHeight       *uint64           `json:"block_height"`
	Transactions      []lineTransaction `json:"transactions"`
	Accounts          []lineAccount     `json:"accounts"`

	Status string `json:"status"`
}

// lineTransaction is a transaction of an event line.
type lineTransaction struct {
	Signature string   `json:"signature"`
	Success   *bool    `json:"success"`
	Fee       *uint64  `json:"fee"`
	Accounts  []string `json:"accounts"`
}

// put emits the event of one line.
func (l *lineReader) put(ctx context.Context, line []byte) error {
	var e eventLine
	if err := json.Unmarshal(line, &e); err != nil {
		return plainJSONError(err)
	}
	if e.Slot == nil && (e.Type == "block" || e.Type == "accounts" || e.Type == "slot") {
		return missing("slot")
	}
	switch e.Type {
	case "block":
		b, err := e.block(l.data)
		if err != nil {
			return err
		}
		return l.out.put(ctx, b)
	case "accounts":
		state := &ledger.BaseState{Slot: ledger.Slot(*e.Slot)}
		var err error
		if state.Accounts, state.Mints, err = writes(e.Accounts, l.data); err != nil {
			return err
		}
		return putBase(ctx, l.out, state)
	case "slot":
		s, err := e.status()
		if err != nil {
			return err
		}
		return l.out.put(ctx, s)
	}
	return errors.New("type is neither block nor accounts nor slot")
}

// block returns the block of a line. Its commitment comes with later lines.
func (e *eventLine) block(data *dataDecoder) (*ledger.Block, error) {
	if e.ParentSlot == nil {
		return nil, missing("parent_slot")
	}
	hash, err := parseHash("blockhash", e.Blockhash)
	if err != nil {
		return nil, err
	}
	previous, err := parsePreviousHash("previous_blockhash", e.PreviousBlockhash)
	if err != nil {
		return nil, err
	}
	b := &ledger.Block{
		Slot: ledger.Slot(*e.Slot), ParentSlot: ledger.Slot(*e.ParentSlot),
		Blockhash: hash, PreviousBlockhash: previous,
		Time: optional(e.BlockTime), Height: optional(e.BlockHeight),
		Status:           ledger.Processed,
		TransactionCount: uint64(len(e.Transactions)),
		Transactions:     make([]ledger.Transaction, 0, len(e.Transactions)),
	}
	if err := checkSlotOrder(b.Slot, b.ParentSlot); err != nil {
		return nil, err
	}
	for i, lt := range e.Transactions {
		t := ledger.Transaction{Fee: optional((*ledger.Lamports)(lt.Fee)), Success: optional(lt.Success)}
		if t.Signature, err = parseSignature("signature", lt.Signature); err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		if t.Accounts, err = parseKeys(make([]ledger.Pubkey, 0, len(lt.Accounts)), "an account key", lt.Accounts); err != nil {
			return nil, fmt.Errorf("transaction %d: %w", i, err)
		}
		b.AddTransaction(t)
	}
	b.Accounts, b.Mints, err = writes(e.Accounts, data)
	return b, err
}

// status returns the slot status of a line.
func (e *eventLine) status() (*ledger.SlotStatus, error) {
	s := &ledger.SlotStatus{Slot: ledger.Slot(*e.Slot)}
	switch e.Status {
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
		h, err := parseHash("blockhash", e.Blockhash)
		if err != nil {
			return nil, err
		}
		s.Blockhash = ledger.Some(h)
	}
	return s, nil
}

// lineAccount is an account of an event line. It carries its data or its facts. One with
// mint facts but no lamports teaches these apart from the account.
type lineAccount struct {
	Pubkey     string          `json:"pubkey"`
	Lamports   *uint64         `json:"lamports"`
	Owner      *string         `json:"owner"`
	Executable *bool           `json:"executable"`
	RentEpoch  *uint64         `json:"rent_epoch"`
	Data       json.RawMessage `json:"data"`
	Token      *tokenFacts     `json:"token"`
	Mint       *mintFacts      `json:"mint"`
}

// writes returns the account writes and mint facts of a line, in its order.
func writes(list []lineAccount, data *dataDecoder) ([]ledger.AccountWrite, []ledger.MintWrite, error) {
	accounts := make([]ledger.AccountWrite, 0, len(list))
	var mints []ledger.MintWrite
	for i := range list {
		a := &list[i]
		w, err := a.write(data)
		if err != nil {
			return nil, nil, fmt.Errorf("account %d: %w", i, err)
		}
		if a.Lamports == nil {
			mints = append(mints, ledger.MintWrite{Pubkey: w.Pubkey, Mint: *w.Mint})
		} else {
			accounts = append(accounts, w)
		}
	}
	return accounts, mints, nil
}

// write returns what the line shows of the account. Without lamports it has mint facts.
func (a *lineAccount) write(data *dataDecoder) (w ledger.AccountWrite, err error) {
	if w.Pubkey, err = parseKey("pubkey", a.Pubkey); err != nil {
		return w, err
	}
	if a.Lamports != nil {
		w.Lamports = ledger.Lamports(*a.Lamports)
	} else if a.Mint == nil {
		return w, missing("lamports")
	}
	owner, err := parseOptKey("owner", a.Owner)
	if err != nil {
		return w, err
	}
	if owner.Known {
		w.Owner = owner.Value
		w.Known |= ledger.FieldOwner
	}
	if a.Executable != nil {
		w.Executable = *a.Executable
		w.Known |= ledger.FieldExecutable
	}
	if a.RentEpoch != nil {
		w.RentEpoch = *a.RentEpoch
		w.Known |= ledger.FieldRentEpoch
	}
	return w, a.teachFacts(&w, data)
}

// teachFacts adds what the data or the facts of the account show.
func (a *lineAccount) teachFacts(w *ledger.AccountWrite, data *dataDecoder) error {
	if len(a.Data) > 0 && string(a.Data) != "null" {
		if a.Token != nil || a.Mint != nil {
			return errors.New("it has both data and facts")
		}
		if w.Known&ledger.FieldOwner == 0 {
			return errors.New("data without owner")
		}
		raw, err := data.decodeLine(a.Data)
		if err != nil {
			return err
		}
		w.TeachData(raw)
		return nil
	}
	if a.Token != nil {
		if err := a.Token.teach(w); err != nil {
			return fmt.Errorf("token: %w", err)
		}
	}
	if a.Mint != nil {
		m, err := a.Mint.mint()
		if err != nil {
			return fmt.Errorf("mint: %w", err)
		}
		w.Mint = &m
		w.Known |= ledger.FieldMint
	}
	return nil
}
