package stream

import (
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

// socket makes a socket of a client of its own, which nobody reads.
func (n *node) socket() *Socket {
	return n.hub.newSocket(&seat{newPeer(ratelimit.Client{}), func() {}}, nil)
}

// Sockets that ask for the same share a topic and its packets, a socket has as many topics as names, and those that have left leave nothing.
func TestTopicsAreSharedBoundedAndForgotten(t *testing.T) {
	n := newNode(t, nil)
	var sockets [2]*Socket
	for i := range sockets {
		sockets[i] = n.socket()
	}
	told := 0
	topicOf := func(i int) Topic {
		text := func(dst []byte, number uint64, note *Note) []byte {
			told++
			return fmt.Appendf(dst, "%d %d %d", number, note.Slot, note.Seq)
		}
		if i%2 == 0 {
			return Topic{Signature: ledger.Some(ledger.Signature{byte(i), byte(i >> 8)}), Level: ledger.Finalized, Received: true, Append: text}
		}
		return Topic{Account: ledger.Some(key(i)), Append: text}
	}
	for _, s := range sockets {
		for i := range maxNames {
			must(t, s.Watch(fmt.Sprint(i), topicOf(i), ledger.Opt[ledger.Seq]{}, func(number uint64) []byte { return fmt.Append(nil, number) }))
		}
		ledgertest.ErrorIs(t, s.Watch("one more", topicOf(maxNames), ledger.Opt[ledger.Seq]{}, nil), ErrManyTopics, "one more than it may have")
		must(t, s.Watch("7", topicOf(7), ledger.Opt[ledger.Seq]{}, func(number uint64) []byte { // which it has
			ledgertest.Equal(t, number, 8, "the number of a topic that is there")
			return nil
		}))
		s.outbox.drain()
	}
	n.script.block(1, account(7, 1, programA), account(maxNames+1, 1, programA))
	first, second := sockets[0].outbox.entries, sockets[1].outbox.entries
	if told != 1 || len(first) != 1 || len(second) != 1 || first[0].packet != second[0].packet {
		t.Errorf("%d notes were made; %d and %d packets wait, want one that is shared", told, len(first), len(second))
	}
	ledgertest.Equal(t, []bool{sockets[0].Unwatch("other", 8), sockets[0].Unwatch("", 8), sockets[0].Unwatch("", 8)}, []bool{false, true, false}, "whether what was taken back was there")
	for _, s := range sockets {
		s.depart()
	}
	ledgertest.Equal(t, n.leftovers(), "", "what is left")
}
