package main

import (
	"encoding/json"
	"time"
)

// The records of the contract, in its order of fields. Numbers are kept as they were
// recorded, so that nothing is lost on the way to the comparison.

type blockRecord struct {
	Slot         uint64  `json:"slot"`
	Blockhash    string  `json:"blockhash"`
	ParentSlot   uint64  `json:"parent_slot"`
	Timestamp    *string `json:"timestamp"`
	Transactions int     `json:"transactions"`
}

type fullBlockRecord struct {
	blockRecord
	PreviousBlockhash *string               `json:"previous_blockhash"`
	BlockHeight       *json.Number          `json:"block_height"`
	Commitment        string                `json:"commitment"`
	Signatures        *[]string             `json:"signatures,omitempty"`
	Records           *[]*transactionRecord `json:"transaction_records,omitempty"`
}

type transactionRecord struct {
	Signature string       `json:"signature"`
	Slot      uint64       `json:"slot"`
	Success   *bool        `json:"success"`
	Fee       *json.Number `json:"fee"`
	Accounts  []string     `json:"accounts"`
	Timestamp *string      `json:"timestamp"`
}

type accountRecord struct {
	Pubkey     string      `json:"pubkey"`
	Lamports   json.Number `json:"lamports"`
	Owner      string      `json:"owner"`
	Executable bool        `json:"executable"`
	RentEpoch  json.Number `json:"rent_epoch"`
}

type balanceRecord struct {
	Pubkey   string      `json:"pubkey"`
	Lamports json.Number `json:"lamports"`
	Slot     uint64      `json:"slot"`
}

type tokenRecord struct {
	TokenAccount    string       `json:"token_account"`
	Mint            string       `json:"mint"`
	ProgramID       string       `json:"program_id"`
	Amount          string       `json:"amount"`
	Decimals        *json.Number `json:"decimals"`
	UIAmount        *string      `json:"ui_amount"`
	State           *string      `json:"state"`
	IsNative        bool         `json:"is_native"`
	Delegate        *string      `json:"delegate"`
	DelegatedAmount *string      `json:"delegated_amount"`
	CloseAuthority  *string      `json:"close_authority"`
}

type tokenList struct {
	Pubkey     string        `json:"pubkey"`
	Tokens     []tokenRecord `json:"tokens"`
	NextCursor *string       `json:"next_cursor"`
}

type programList struct {
	ProgramID  string          `json:"program_id"`
	Accounts   []accountRecord `json:"accounts"`
	NextCursor *string         `json:"next_cursor"`
}

type accountsRecord struct {
	Accounts []*accountRecord `json:"accounts"`
}

type recentRecord struct {
	Transactions []*transactionRecord `json:"transactions"`
	NextBefore   *string              `json:"next_before"`
}

// isoTime writes Unix seconds as the contract does.
func isoTime(unix int64) *string {
	s := time.Unix(unix, 0).UTC().Format("2006-01-02T15:04:05Z")
	return &s
}
