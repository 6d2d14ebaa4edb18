package nodetest

import (
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
)

// Fault is one thing that goes wrong. Which fields it uses is said at its kind.
type Fault struct {
	Kind  FaultKind
	On    Side          // of what happens on the wire
	N     int           // how many messages, requests or subscriptions it hits; 0: one
	After int           // bytes, or messages, that still pass
	For   time.Duration // how long it lasts
	Code  codes.Code    // with which a stream ends
	How   int           // which of several ways
}

// Side is one of the node's two services.
type Side uint8

const (
	Stream Side = iota // Yellowstone gRPC
	Calls              // JSON-RPC
)

// FaultKind says what goes wrong.
type FaultKind uint8

const (
	// On the wire, On either side.
	Cut     FaultKind = iota // a connection ends After bytes
	Stall                    // on a connection nothing passes For so long, After bytes
	Trickle                  // a few bytes at a time pass, For so long
	Down                     // all connections end, and are refused For so long

	// On the stream.
	Kick          // it ends with Code as for a client that lags; OK ends it as if all were well
	Refuse        // the next N subscriptions that ask for a slot are refused with Code
	IgnoreFrom    // the next N subscriptions get the live head, whatever slot they ask for
	ReplayAll     // the next N subscriptions get all that is kept, whatever slot they ask for
	Duplicate     // the newest N messages come again
	Garbage       // N messages are nonsense
	WrongParent   // the next block's meta names another parent: How 0 its hash, 1 its slot
	Equivocate    // the next block's meta has another hash: How 0 instead of its own, 1 beside it
	OmitMeta      // the meta of N blocks does not come
	OmitTx        // N transactions do not come
	OmitProcessed // N statuses processed do not come; those omitted have the order of slotStatus
	OmitConfirmed // likewise
	OmitFinalized // likewise

	// On JSON-RPC.
	RateLimit   // N requests are answered 429
	ServerError // N requests are answered 503 in HTML
	Slow        // N requests wait For so long
	BadAnswer   // N answers are nonsense
	Missing     // N blocks that are there are said to be skipped
	Hide        // for For so long every third block is left out of lists and said to be skipped
	Stale       // for For so long the node knows nothing of the newest N slots
	faultKinds
)

var faultNames = [faultKinds]string{
	"cut", "stall", "trickle", "down", "kick", "refuse from_slot", "ignore from_slot", "replay everything", "duplicate", "garbage",
	"wrong parent", "equivocate", "omit meta", "omit transactions", "omit processed", "omit confirmed", "omit finalized",
	"rate limit", "server error", "slow", "bad answer", "missing", "hide", "stale",
}

// String names the kind.
func (k FaultKind) String() string { return faultNames[k] }

// pending are the faults that wait for what they hit, or last.
type pending struct {
	mu     sync.Mutex
	faults []*injected
}

type injected struct {
	Fault
	until time.Time
}

// add notes a fault.
func (p *pending) add(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.N = max(f.N, 1)
	p.faults = append(p.faults, &injected{f, time.Now().Add(f.For)})
}

// take returns the next fault of a kind and counts it as having hit once.
func (p *pending) take(kinds ...FaultKind) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.faults, func(f *injected) bool { return slices.Contains(kinds, f.Kind) })
	if i < 0 {
		return Fault{}, false
	}
	f := p.faults[i]
	if f.After > 0 {
		f.After--
		return Fault{}, false
	}
	hit := f.Fault
	if f.N--; f.N == 0 || f.Kind == Duplicate {
		p.faults = slices.Delete(p.faults, i, i+1)
	}
	return hit, true
}

// lasting returns the newest fault of a kind that lasts, if it does now.
func (p *pending) lasting(kind FaultKind) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range slices.Backward(p.faults) {
		if f.Kind == kind {
			return f.Fault, time.Now().Before(f.until)
		}
	}
	return Fault{}, false
}

// clear forgets all faults.
func (p *pending) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}
