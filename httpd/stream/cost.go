package stream

import "time"

// The prices of work, see work. They are rough: each is what the thing took at most of a core.
const (
	messagePrice = 25 * time.Microsecond // a message, and its answer
	bytePrice    = 60 * time.Nanosecond  // of a message: a name has 47
	pubkeyPrice  = 3 * time.Microsecond  // looked up for a snapshot, found and encoded or not
	programPrice = 50 * time.Microsecond // looked up for a snapshot
	memberPrice  = 3 * time.Microsecond  // of a program, found and perhaps encoded
	updatePrice  = time.Microsecond      // looked at for a resume, and perhaps encoded
	pastPrice    = 5 * time.Millisecond  // to begin reading the log where it was left
)

func messageCost(bytes int) time.Duration { return messagePrice + time.Duration(bytes)*bytePrice }

func snapshotCost(n *names) time.Duration {
	return time.Duration(len(n[pubkeys]))*pubkeyPrice + time.Duration(len(n[programs]))*programPrice
}

func foundCost(accounts int) time.Duration { return time.Duration(accounts) * memberPrice }

// cost returns the price of a backlog as far as it is known before it is made.
func (b *backlog) cost() (cost time.Duration) {
	if b.past != nil {
		cost += pastPrice
	}
	for _, e := range b.emissions {
		cost += time.Duration(len(e.updates)+1) * updatePrice
	}
	return cost
}
