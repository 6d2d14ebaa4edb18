package upstream

import (
	"errors"
	"time"
)

// ErrOtherChain says that the node's chain does not hold the block that it is to go on from.
var ErrOtherChain = errors.New("the node's chain does not hold it: it shows another ledger, or a fork below finality")

// Failure is an error that knows what went wrong upstream.
type Failure interface {
	error
	Kind() Kind
	RetryAfter() time.Duration // what the node asks to wait, 0 if it says nothing
}

// Kind is why something went wrong upstream.
type Kind uint8

const (
	Dial         Kind = iota // no connection could be made
	Closed                   // the node, or what is between, ended the connection
	Stalled                  // connected, and nothing came for too long
	Garbage                  // what came is not what the protocol says
	Refused                  // the node does not let us in: bad token, no permission, not offered
	RateLimited              // the node asks to come less often
	OutOfRange               // the node does not keep what was asked for any more
	Unavailable              // the node does not have it yet, or is behind
	Server                   // the node failed at it: an internal error, a 5xx
	TooLarge                 // an answer or a message is over its bound
	WrongParent              // a block does not build on what it says, or on what is held
	Equivocation             // one slot with two blocks, both claimed to be confirmed
	Kinds                    // how many there are
)

var kindNames = [Kinds]string{
	"dial", "closed", "stalled", "garbage", "refused", "rate_limited", "out_of_range",
	"unavailable", "server", "too_large", "wrong_parent", "equivocation",
}

// kindReasons finish the sentence "the source is not connected: …".
var kindReasons = [Kinds]string{
	"the node cannot be reached",
	"the node closed the connection",
	"nothing came over the connection",
	"what the node sent could not be understood",
	"the node refused access",
	"the node's rate limit is used up",
	"the node does not keep the slots that are missing here",
	"the node does not have what was asked for yet",
	"the node failed to answer",
	"the node sent more than is taken at once",
	"the node's blocks do not build on those held here",
	"the node showed two blocks for one slot",
}

// String returns the name that metrics show.
func (k Kind) String() string {
	if k < Kinds {
		return kindNames[k]
	}
	return "unknown"
}

// Reason returns a clause for people: "the node cannot be reached".
func (k Kind) Reason() string {
	if k < Kinds {
		return kindReasons[k]
	}
	return "the reason is unknown"
}
