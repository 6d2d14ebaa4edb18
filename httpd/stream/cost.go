package stream

import "time"

// The prices of work, see work. Each is what the thing took, or up to a third more, on a core of 2024:
// one socket did it 19 times a second at a node with a simulated ledger of 18,000 accounts, and the
// node's processor time was counted, less what it takes without the socket.
const (
	messagePrice  = 25 * time.Microsecond // a message, and its answer
	bytePrice     = 100 * time.Nanosecond // of a message: 45 KB that name 1,000 accounts took 5 ms on a slower core
	pubkeyPrice   = 3 * time.Microsecond  // looked up for a snapshot, found and encoded or not
	programPrice  = 40 * time.Microsecond // looked up for a snapshot: 1,350 took 47 ms; a wallet's tokens are as much
	memberPrice   = 2 * time.Microsecond  // of a program, found and perhaps encoded: 10,000 took 11 ms to find; or a mint
	filteredPrice = 10 * time.Millisecond // a page of a program's accounts of which few match: 65,536 are examined
	updatePrice   = 250 * time.Nanosecond // examined for a resume, or an emission; it is sent as a live one, which costs nothing
	dataPrice     = 5 * time.Nanosecond   // a byte of the data of an account that is encoded for one client alone: as much as zstd takes
	pastPrice     = 5 * time.Millisecond  // to begin reading the log where it was left
)

func messageCost(bytes int) time.Duration { return messagePrice + time.Duration(bytes)*bytePrice }

func snapshotCost(n *names) time.Duration {
	return time.Duration(len(n[pubkeys]))*pubkeyPrice + time.Duration(len(n[programs]))*programPrice +
		time.Duration(len(n[wallets]))*(pubkeyPrice+programPrice)
}

func foundCost(accounts int) time.Duration { return time.Duration(accounts) * memberPrice }

// cost returns the price of a backlog as far as it is known before it is made.
func (b *backlog) cost() (cost time.Duration) {
	if b.past != nil {
		cost += pastPrice
	}
	for _, e := range b.emissions {
		first, end := b.told.span(e)
		cost += time.Duration(1+end-first) * updatePrice
	}
	return cost
}
