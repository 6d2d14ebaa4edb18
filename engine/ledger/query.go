package ledger

import "time"

// Query says which version of the ledger a question is about.
type Query struct {
	Commitment Commitment
	// MinSlot asks for a version at or past the slot at that commitment; Wait is how
	// long to wait for it.
	MinSlot Slot
	Wait    time.Duration
	// Head, when set, is the head to answer from instead of the newest.
	Head *Head
	// Parts says how much of a block is wanted.
	Parts BlockParts
}

// BlockParts says how much of a block an answer has to tell. More may be told.
type BlockParts uint8

// A block with its transactions, with nothing of them but their signatures, or without them.
const (
	WholeBlock BlockParts = iota
	SignaturesOnly
	NoTransactions
)

// View says which version an answer was computed from.
type View struct {
	Head       *Head // nil before anything was published
	Commitment Commitment
	// Lacks: of a list, or of several accounts asked for by key, that it may lack some that exist: this node does
	// not hold all of them.
	Lacks bool
}

// Tip returns the tip the answer stands at. Head must not be nil.
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

// TokenAnswer is one holding of a wallet. Account.Token is not nil; Mint is nil while
// nothing is known of the mint.
type TokenAnswer struct {
	Account Account
	Mint    *Mint
}

// RecentRange asks for transactions strictly between two others, newest first.
type RecentRange struct {
	Before, After Opt[Signature]
	Limit         int
}

// NodeStatus is what the node says of itself.
type NodeStatus struct {
	NodeID string
	Peers  int           // connected upstream sources and cluster peers
	Uptime time.Duration // since the process started
	// NotReady is nil once there is something to answer from. Before, it is what every question is refused with:
	// ErrRecovering, ErrNoBlock or, of a node that gave up its answers for good, another ErrUnavailable.
	NotReady error
	// Unhealthy is empty while the node is healthy, else one sentence that says why not.
	Unhealthy string
}
