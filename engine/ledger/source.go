package ledger

import (
	"context"
	"time"
)

// SourceInfo says what kind of source blocks come from; it decides how the sequencer
// treats gaps, finality and the end of input.
type SourceInfo struct {
	// Name is what an operator wrote, without secrets: "sim:seed=7", "file:a.json".
	Name string
	// Identity names the ledger the source shows, "" if only its root block can tell.
	// A data directory of another identity is refused.
	Identity string

	Finite      bool // ends by itself
	Live        bool // follows a node: when it shows nothing for 10 seconds it is stalled
	Complete    bool // shows every account of the ledger, so that absence means "does not exist"
	GapsAllowed bool // missing parents are passed over: the slots between are not indexed
	// FinalityByDepth: until the first slot status, blocks become final 32 blocks deep, and
	// all of them at the end of input.
	FinalityByDepth bool
}

// ResumePoint is where a source goes on: the newest finalized block already held.
//
// Where base state was imported and no block came after it, that is the slot of the base state: the
// source goes on with the first block whose parent slot is at or below Slot, and has to show, or to prove
// skipped, everything after Slot. Then Blockhash is that of the block at Slot, or zero if nobody knows
// it; a parent hash is not to be held against a zero one.
type ResumePoint struct {
	Slot      Slot
	Newest    Slot // of the blocks held, which may be undone: up to there a source shows nothing new
	Blockhash Hash // zero: not known
	Height    Opt[uint64]
	// Accounts calls visit for every live account at that block, in pubkey order, until
	// it returns false. Mints does the same for mint facts.
	Accounts func(visit func(*Account) bool) error
	Mints    func(visit func(Pubkey, Mint) bool) error
}

// Emit hands one event to the sequencer and waits until there is room for it. After an
// error the source must return it.
type Emit func(ctx context.Context, e Event) error

// Fetcher is what a source may be as well: one whose node can be asked for accounts.
type Fetcher interface {
	// Fetch returns the accounts as they stand at the node at a level, confirmed or finalized, as base state of
	// the slot that the node answered at. Keys that do not exist there come as writes of 0
	// lamports, so that each key is answered. There are at most [MaxFetchKeys] keys. Any
	// goroutine may call it, also several at once. An *UpstreamError says that the node is
	// down or busy.
	Fetch(ctx context.Context, keys []Pubkey, level Commitment) (*BaseState, error)
}

// MaxFetchKeys is how many accounts a node is asked for at once.
const MaxFetchKeys = 100

// MaxRetryAfter is how long an upstream node can make anybody wait: it is left alone for so long at most, and
// clients are asked to wait no longer. What it asks beyond that is taken for a mistake.
const MaxRetryAfter = time.Minute

// Troubled is what a source may be as well: one that knows what keeps it from going on.
type Troubled interface {
	// Trouble returns one sentence, "" if the source knows of nothing. Anybody may read it: it
	// names no address and nothing that came from the node.
	Trouble() string
}

// UpstreamError says that the node which a source follows could not be asked, or did not answer
// as it should. It matches ErrUnavailable.
type UpstreamError struct {
	Busy       bool          // it asks for patience; else it is down or out of order
	RetryAfter time.Duration // what it asks for, 0 if it says nothing
	Err        error         // for the log of the node's operator; holds no secrets
}

// Error tells which of the two it is, and why.
func (e *UpstreamError) Error() string {
	text := "the upstream node is down"
	if e.Busy {
		text = "the upstream node is busy"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns why.
func (e *UpstreamError) Unwrap() error { return e.Err }

// Is makes every UpstreamError match ErrUnavailable.
func (e *UpstreamError) Is(target error) bool { return target == ErrUnavailable }
