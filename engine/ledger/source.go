package ledger

import (
	"context"
	"time"
)

// SourceInfo describes a source. It decides how the sequencer treats gaps, finality and the
// end of input.
type SourceInfo struct {
	// Name is what the operator wrote, without secrets: "sim:seed=7", "file:a.json".
	Name string
	// Identity names the ledger the source shows, "" if only its root block can tell.
	// A data directory of another identity is refused.
	Identity string

	Live        bool // follows a node: it counts as stalled after 10 seconds without an event
	Complete    bool // shows every account of the ledger, so that absence means "does not exist"
	GapsAllowed bool // parents may be missing: the slots between are not indexed

	// Stream: the source passes on what its node reports, in the node's order. A block may come before its parent or without it,
	// and the source learns with a [Question] what is missing. An event that contradicts the chain is dropped, and the next
	// answer says so.
	//
	// The node's statuses name slots alone, and the block that it showed at a slot may be a wrong one. The hash of a status is
	// that of the block which the present session showed; a status has none where the session showed no block. So:
	//   - a block is final, or the first one, only if another block builds on it;
	//   - where two blocks were shown at a slot, of which none is dead, a status of that slot says nothing;
	//   - a status without a hash is about the block of its slot that is confirmed already, or about none;
	//   - a dead block, and what builds on it, comes back when it, or a block on it, is confirmed; then it is not dead again.
	Stream bool
	// FinalityByDepth: until the first slot status, blocks become final 32 blocks deep, and
	// all of them at the end of input.
	FinalityByDepth bool
}

// Source emits what happens on a ledger.
type Source interface {
	// Info says what the sequencer has to know of the source. It never changes.
	Info() SourceInfo
	// Run emits events in order until ctx ends (it returns ctx.Err()), the input ends (nil), emit
	// fails (its error) or the source does. from is nil on a fresh start.
	Run(ctx context.Context, from *ResumePoint, emit Emit) error
}

// ResumePoint is where a source resumes: at the newest finalized block already held.
//
// If base state was imported and no block came after it, Slot and Blockhash are those of the block after which the base state
// was taken. That block itself is not held. The source shows, or proves skipped, everything after Slot.
type ResumePoint struct {
	Slot      Slot
	Newest    Slot // of the newest block held, which may be undone: a source shows nothing new up to there
	Blockhash Hash // of the block at Slot
	Height    Opt[uint64]
	// Visit calls account for every live account at that block, in pubkey order, and then mint for the facts of every mint, until one of
	// them returns false. What they get is valid until they return.
	Visit func(account func(*Account) bool, mint func(*MintWrite) bool) error
}

// Emit passes one event to the sequencer and waits until its queue has room, not until the event is decided. After an
// error the source must return that error.
type Emit func(ctx context.Context, e Event) error

// Fetcher is an optional interface of a source: its node answers requests for accounts.
type Fetcher interface {
	// Fetch returns the accounts as they stand at the node at a level, confirmed or finalized, as base state of
	// the slot that the node answered at. Keys that do not exist there come as writes of 0
	// lamports, so that each key is answered. There are at most [MaxFetchKeys] keys. Any
	// goroutine may call it, also several at once. An *UpstreamError says that the node is
	// down or busy.
	Fetch(ctx context.Context, keys []Pubkey, level Commitment) (*BaseState, error)
}

// MaxFetchKeys bounds the accounts of one request to a node.
const MaxFetchKeys = 100

// MaxRetryAfter bounds the wait that an upstream node can ask for: of the source before its next request, and of
// clients. A longer one is cut to it.
const MaxRetryAfter = time.Minute

// Follower is an optional interface of a source: it follows a node. Any goroutine may ask it.
type Follower interface {
	// Peers returns how many upstream nodes are connected now.
	Peers() int
	// Trouble returns one sentence that says what stops the source, or "". It is shown to clients, so it
	// contains no address and no text from the node.
	Trouble() string
}

// UpstreamError says that a request to the node which a source follows failed, or that its answer was
// invalid. It matches ErrUnavailable.
type UpstreamError struct {
	Busy       bool          // it limits our rate; else it is down or faulty
	RetryAfter time.Duration // the wait it asks for, or 0
	Err        error         // for the log of the node's operator; holds no secrets
}

// Error says whether the node is down or busy, and why.
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

// Unwrap returns the cause.
func (e *UpstreamError) Unwrap() error { return e.Err }

// Is makes every UpstreamError match ErrUnavailable.
func (e *UpstreamError) Is(target error) bool { return target == ErrUnavailable }
