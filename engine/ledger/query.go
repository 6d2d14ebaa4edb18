package ledger

import (
	"net/netip"
	"time"
)

// Query selects the version of the ledger that an answer is computed from.
type Query struct {
	Commitment Commitment
	// MinSlot requires a version at or past the slot at that commitment; Wait is how
	// long to wait for it.
	MinSlot Slot
	Wait    time.Duration
	// Head, when set, is the head to answer from instead of the newest.
	Head *Head
	// Deadline is when the answer must be there; zero: the ledger chooses it once the version is fixed.
	Deadline time.Time
	// Parts is how much of a block the caller needs.
	Parts BlockParts
	// Where selects which accounts of a program are listed; nil selects all.
	Where *DataFilter
	// TokensOf is whose token accounts are listed.
	TokensOf TokensOf
	// Client is the client that asks. Clients take turns in reading from disk; queries with the zero address count as one client's.
	Client netip.Addr
	// Recent makes a query for a transaction search memory alone and not the disk.
	Recent bool
}

// BlockParts is how much of a block an answer must hold. It may hold more.
type BlockParts uint8

const (
	NoTransactions BlockParts = iota
	SignaturesOnly            // of its transactions
	WholeBlock
)

// TokensOf is what token accounts are listed by.
type TokensOf uint8

const (
	OfWallet   TokensOf = iota
	OfDelegate          // who may spend from them
	OfMint              // whose tokens they hold; a node may have no index for that
)

// View is the version that an answer was computed from.
type View struct {
	Head       *Head // nil before anything was published
	Commitment Commitment
	// Deadline is the deadline of the query, for further queries that the same answer needs; zero: the query needed none.
	Deadline time.Time
	// Lacks is true where a list, or several accounts by key, may lack some that exist, because the node does
	// not hold all accounts.
	Lacks bool
	// DataUnknown is true where a filter passed over accounts whose data is not known.
	DataUnknown bool
}

// Misses reports whether an account of an answer, which may have only its key, is neither live nor known to be closed: a node that does not hold all
// accounts cannot say that there is none.
func (v View) Misses(a *Account) bool {
	return !a.Exists() && (a.Since == 0 || a.ForgottenBelow(v.Head.Horizon))
}

// Tip returns the tip of the answer's level. Head must not be nil.
func (v View) Tip() *Tip { return &v.Head.Tips[v.Commitment] }

// BlockAnswer is a block with the level it has reached in the answer's view.
type BlockAnswer struct {
	Block      *Block
	Commitment Commitment
}

// TransactionAnswer is a transaction with the level its block has reached.
type TransactionAnswer struct {
	Transaction *Transaction
	Commitment  Commitment
}

// TransactionRange selects transactions strictly between two others, in the order of the ledger: by slot and index in the block.
type TransactionRange struct {
	Before, After    Opt[Signature]
	FromSlot, ToSlot Opt[Slot]   // both are in the range
	Address          Opt[Pubkey] // only those that name it
	Success          Opt[bool]   // only those with this outcome
	Limit            int         // how many at most
	OldestFirst      bool        // from the other end
}

// TransactionPage is a part of a list of transactions.
type TransactionPage struct {
	Transactions []*Transaction
	// Next is the transaction after which the next page begins, in the order of the list; unknown at the end of the list. A page may
	// end before its limit, even without a single transaction, if many were examined.
	Next        Opt[Signature]
	HistoryFrom Slot // from it on all blocks of the chain are held
}

// SlotPage is a part of the slots that have blocks.
type SlotPage struct {
	Slots       []Slot // oldest first
	HistoryFrom Slot   // from it on no block is missing
}

// NodeStatus is the state of the node.
type NodeStatus struct {
	NodeID string
	Peers  int           // connected upstream sources and cluster peers
	Uptime time.Duration // since the process started
	// NotReady is nil once the node answers queries. Before, it is the error of every query:
	// ErrRecovering, ErrNoBlock or, on a node that stopped answering for good, another ErrUnavailable.
	NotReady error
	// Unhealthy is empty while the node is healthy, else one sentence with the reason.
	Unhealthy string
	// Lags says that the node is unhealthy only because its newest block is old: it still applies new blocks.
	Lags bool
	// SlotsBehind is, if Lags, how many slots the source is ahead; unknown if the source does not say.
	SlotsBehind Opt[Slot]
	// Degraded is empty while nothing is lost, else one sentence that says what a healthy node cannot answer.
	Degraded string
}
