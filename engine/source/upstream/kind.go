package upstream

import "time"

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

// kinds are the names that metrics show, and the ends of the sentence "the source is not connected: …".
var kinds = [Kinds]struct{ name, reason string }{
	Dial:         {"dial", "the node cannot be reached"},
	Closed:       {"closed", "the node closed the connection"},
	Stalled:      {"stalled", "nothing came over the connection"},
	Garbage:      {"garbage", "what the node sent could not be understood"},
	Refused:      {"refused", "the node refused access"},
	RateLimited:  {"rate_limited", "the node's rate limit is used up"},
	OutOfRange:   {"out_of_range", "the node does not keep the slots that are missing here"},
	Unavailable:  {"unavailable", "the node does not have what was asked for yet"},
	Server:       {"server", "the node failed to answer"},
	TooLarge:     {"too_large", "the node sent more than is taken at once"},
	WrongParent:  {"wrong_parent", "the node's blocks do not build on those held here"},
	Equivocation: {"equivocation", "the node showed two blocks for one slot"},
}

// String returns the name that metrics show.
func (k Kind) String() string { return kinds[k].name }

// Reason returns a clause for people: "the node cannot be reached".
func (k Kind) Reason() string { return kinds[k].reason }
