package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// eventLine is an event as a line of NDJSON (README, "Event lines").
type eventLine struct {
	Type              string        `json:"type"`
	Slot              ledger.Slot   `json:"slot"`
	Status            string        `json:"status,omitempty"`
	ParentSlot        ledger.Slot   `json:"parent_slot,omitempty"`
	Blockhash         string        `json:"blockhash,omitempty"`
	PreviousBlockhash string        `json:"previous_blockhash,omitempty"`
	BlockTime         int64         `json:"block_time,omitempty"`
	BlockHeight       uint64        `json:"block_height,omitempty"`
	Transactions      *[]struct{}   `json:"transactions,omitempty"`
	Accounts          []accountLine `json:"accounts,omitempty"`
}

type accountLine struct {
	Pubkey     string          `json:"pubkey"`
	Lamports   ledger.Lamports `json:"lamports"`
	Owner      string          `json:"owner"`
	Executable bool            `json:"executable"`
	RentEpoch  uint64          `json:"rent_epoch"`
	Token      any             `json:"token"` // false: it is known to hold none
	Mint       bool            `json:"mint"`
}

type tokenLine struct {
	Mint            string  `json:"mint"`
	Owner           string  `json:"owner"`
	Amount          string  `json:"amount"`
	State           string  `json:"state"`
	Delegate        *string `json:"delegate"`
	DelegatedAmount string  `json:"delegated_amount"`
	CloseAuthority  *string `json:"close_authority"`
	IsNative        bool    `json:"is_native"`
}

// writeLines writes the events of an event file as NDJSON. It knows what a made-up ledger says, and no more.
func writeLines(path, eventFile string) (err error) {
	events, err := os.Open(eventFile)
	if err != nil {
		return err
	}
	defer events.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	reader, err := codec.NewEventReader(events)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, fileBuffer)
	lines := json.NewEncoder(buffered)
	for {
		e, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(buffered.Flush(), file.Sync())
		}
		if err == nil {
			err = lines.Encode(lineOf(e))
		}
		if err != nil {
			return fmt.Errorf("cannot write a ledger to %s: %w", path, err)
		}
	}
}

func lineOf(event ledger.Event) eventLine {
	switch e := event.(type) {
	case *ledger.BaseState:
		return eventLine{Type: "accounts", Slot: e.Slot, Accounts: accountLines(e.Accounts)}
	case *ledger.SlotStatus:
		return eventLine{Type: "slot", Slot: e.Slot, Status: e.Status.String(), Blockhash: e.Blockhash.Value.String()}
	case *ledger.Block:
		return eventLine{
			Type: "block", Slot: e.Slot, ParentSlot: e.ParentSlot, Blockhash: e.Blockhash.String(), PreviousBlockhash: e.PreviousBlockhash.Value.String(),
			BlockTime: e.Time.Value, BlockHeight: e.Height.Value, Transactions: new([]struct{}{}), Accounts: accountLines(e.Accounts),
		}
	}
	panic(fmt.Sprintf("a made-up ledger has an event of type %T", event))
}

func accountLines(accounts []ledger.AccountWrite) []accountLine {
	lines := make([]accountLine, len(accounts))
	for i := range accounts {
		a := &accounts[i]
		lines[i] = accountLine{Pubkey: a.Pubkey.String(), Lamports: a.Lamports, Owner: a.Owner.String(), RentEpoch: a.RentEpoch, Token: false}
		if t := a.Token; t != nil {
			lines[i].Token = tokenLine{Mint: t.Mint.String(), Owner: t.Owner.String(), Amount: strconv.FormatUint(t.Amount, 10), State: "initialized", DelegatedAmount: "0"}
		}
	}
	return lines
}
