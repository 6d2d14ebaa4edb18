package client

import "time"

// The records of the interface, as the node answers them. What the ledger never recorded is nil.
type (
	// Health says that the node is to be asked.
	Health struct {
		Status    string    `json:"status"`
		Version   string    `json:"version"`
		Timestamp time.Time `json:"timestamp"`
	}

	// Status says what the node is.
	Status struct {
		Status  string `json:"status"`
		Uptime  string `json:"uptime"`
		Version string `json:"version"`
		Node    struct {
			ID    string `json:"node_id"`
			Type  string `json:"node_type"`
			Peers int    `json:"peer_count"`
		} `json:"node_info"`
	}

	// Block is the head of a block. The newest block has the first five fields alone.
	Block struct {
		Slot         uint64        `json:"slot"`
		Hash         string        `json:"blockhash"`
		ParentSlot   uint64        `json:"parent_slot"`
		Timestamp    *time.Time    `json:"timestamp"`
		Transactions int           `json:"transactions"`
		PreviousHash *string       `json:"previous_blockhash"`
		Height       *uint64       `json:"block_height"`
		Commitment   Commitment    `json:"commitment"`
		Signatures   []string      `json:"signatures"`          // if they were asked for
		Records      []Transaction `json:"transaction_records"` // if they were asked for
	}

	// Transaction is one transaction, by its first signature.
	Transaction struct {
		Signature string     `json:"signature"`
		Slot      uint64     `json:"slot"`
		Success   *bool      `json:"success"`
		Fee       *uint64    `json:"fee"`
		Accounts  []string   `json:"accounts"`
		Timestamp *time.Time `json:"timestamp"`
	}

	// RecentTransactions is a page of transactions, the newest first.
	RecentTransactions struct {
		Transactions []Transaction `json:"transactions"`
		NextBefore   *string       `json:"next_before"` // nil at the end
	}

	// AccountTransactions is a page of the transactions that name an address.
	AccountTransactions struct {
		Pubkey       string        `json:"pubkey"`
		Transactions []Transaction `json:"transactions"`
		NextBefore   *string       `json:"next_before"`  // nil at the end, and with the oldest first
		NextAfter    *string       `json:"next_after"`   // nil at the end, and with the newest first
		HistoryFrom  uint64        `json:"history_from"` // from this slot on all blocks are held
	}

	// Account is an account. Token and Mint are nil unless they were asked for and the account is of that kind; Space, how much data there is, and
	// Data, the data or a slice of it, unless they were asked for and are known.
	Account struct {
		Pubkey     string      `json:"pubkey"`
		Lamports   uint64      `json:"lamports"`
		Owner      string      `json:"owner"`
		Executable bool        `json:"executable"`
		RentEpoch  uint64      `json:"rent_epoch"`
		Token      *TokenFacts `json:"token"`
		Mint       *MintFacts  `json:"mint"`
		Space      *uint64     `json:"space"`
		Data       []byte      `json:"data"`
	}

	// Balance is what an account holds at a slot.
	Balance struct {
		Pubkey   string `json:"pubkey"`
		Lamports uint64 `json:"lamports"`
		Slot     uint64 `json:"slot"`
	}

	// TokenFacts are what a token account says. Nil is what no source has told.
	TokenFacts struct {
		Mint            string  `json:"mint"`
		Owner           string  `json:"owner"` // the wallet
		Amount          string  `json:"amount"`
		Decimals        *uint8  `json:"decimals"`
		UIAmount        *string `json:"ui_amount"`
		State           *string `json:"state"`
		IsNative        bool    `json:"is_native"`
		Delegate        *string `json:"delegate"`
		DelegatedAmount *string `json:"delegated_amount"`
		CloseAuthority  *string `json:"close_authority"`
	}

	// MintFacts are what a mint says.
	MintFacts struct {
		Decimals uint8   `json:"decimals"`
		Supply   *string `json:"supply"`
	}

	// Token is a token account of a wallet, whose key is TokenAccount. Owner is the wallet asked for, and not repeated.
	Token struct {
		TokenAccount string `json:"token_account"`
		ProgramID    string `json:"program_id"`
		TokenFacts
	}

	// Tokens is a page of a wallet's token accounts, in the order of their keys.
	Tokens struct {
		Pubkey     string  `json:"pubkey"`
		Tokens     []Token `json:"tokens"`
		NextCursor *string `json:"next_cursor"` // nil at the end
	}

	// Holders are the token accounts that hold the most of a mint, the largest first, with their facts.
	Holders struct {
		Pubkey  string    `json:"pubkey"` // of the mint
		Holders []Account `json:"holders"`
	}

	// ProgramAccounts is a page of the accounts that a program owns, in the order of their keys.
	ProgramAccounts struct {
		ProgramID  string    `json:"program_id"`
		Accounts   []Account `json:"accounts"`
		NextCursor *string   `json:"next_cursor"` // nil at the end
	}

	// Accounts are several accounts at one slot, in the order asked; nil where there is none.
	Accounts struct {
		Accounts []*Account `json:"accounts"`
	}
)
