package sequencer

import (
	"ledgerd/engine/chain"
	"ledgerd/engine/ledger"
)

// backlog keeps events, in order, while too much is unfinalized. When it exceeds chain.MaxWaitingBytes the source finalizes
// nothing, and ingest stops.
type backlog struct {
	events []ledger.Event
	bytes  int
}

func (b *backlog) add(ev ledger.Event) error {
	if b.bytes > chain.MaxWaitingBytes {
		return chain.Refused("more than %d bytes of blocks are unfinalized and the source finalizes none of them", maxUnfinalizedBytes)
	}
	b.bytes += eventBytes(ev)
	b.events = append(b.events, ev)
	return nil
}

func (b *backlog) take() ledger.Event {
	ev := b.events[0]
	b.events[0] = nil
	b.events = b.events[1:]
	b.bytes -= eventBytes(ev)
	return ev
}

// eventBytes estimates what an event holds in memory.
func eventBytes(ev ledger.Event) int {
	const statusBytes = 64
	switch ev := ev.(type) {
	case *ledger.Block:
		return ev.SizeBytes()
	case *ledger.BaseState:
		return ev.SizeBytes()
	}
	return statusBytes
}
