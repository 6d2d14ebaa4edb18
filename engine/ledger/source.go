package ledger

import "context"

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
type ResumePoint struct {
	Slot      Slot
	Blockhash Hash
	Height    Opt[uint64]
	// Accounts calls visit for every live account at that block, in pubkey order, until
	// it returns false. Mints does the same for mint facts.
	Accounts func(visit func(*Account) bool) error
	Mints    func(visit func(Pubkey, Mint) bool) error
}

// Emit hands one event to the sequencer and waits until there is room for it. After an
// error the source must return it.
type Emit func(ctx context.Context, e Event) error
