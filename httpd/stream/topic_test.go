package stream

import (
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

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
		ledgertest.Equal(t, s.levels, [ledger.Commitments]int{}, "how many topics a socket has of each level in the end")
	}
	ledgertest.Equal(t, n.leftovers(), "", "what is left")
}

// sink is a socket that takes all, and says before what.
type sink struct {
	net.Conn
	takes func()
}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }
func (s *sink) Write(b []byte) (int, error) {
	s.takes()
	return len(b), nil
}

// A socket that is closed as a slow one is told a number from which each of its topics can be resumed, whatever their levels and wherever it was closed: none
// is older than what that topic was told, by more than what others of its level, or levels below, have still to come to. What it resumes lacks all
// since its number, until that is written.
func TestTopicsResumeFromWhatASlowSocketIsTold(t *testing.T) {
	for _, levels := range [][]ledger.Commitment{{ledger.Processed}, {ledger.Finalized}, {ledger.Processed, ledger.Finalized}, {ledger.Finalized, ledger.Processed}} {
		n := newNode(t, nil)
		n.script.blocks(9)
		n.script.reach(ledger.Finalized, 9)
		n.script.publish()
		s := n.socket()
		watch := func(level ledger.Commitment, k int, seen ledger.Opt[ledger.Seq]) {
			text := func(dst []byte, _ uint64, note *Note) []byte { return fmt.Append(dst, level, note.Seq) }
			must(t, s.Watch(fmt.Sprint(level, k), Topic{Level: level, Account: ledger.Some(key(k)), Append: text}, seen, func(uint64) []byte { return nil }))
		}
		from := make(map[*packet]ledger.Seq) // which packets write what is resumed
		resume := func(level ledger.Commitment, k int, seen ledger.Seq) {
			watch(level, k, ledger.Some(seen))
			from[s.outbox.entries[len(s.outbox.entries)-1].packet] = seen
		}
		for _, level := range levels {
			watch(level, 1, ledger.Opt[ledger.Seq]{})
			watch(level, 2, ledger.Opt[ledger.Seq]{})
		}
		s.outbox.drain()
		held := slices.Max(levels)
		if got := s.lastSeq(); got < 8 || got > 9 {
			t.Errorf("%v: before anything was sent %d is to be resumed from, where all have come to 9", levels, got)
		}
		var slot ledger.Slot
		written, late := 0, false
		s.conn = &sink{takes: func() {
			got := s.lastSeq()
			for _, e := range s.outbox.entries[written:] {
				if seen, resumed := from[e.packet]; resumed && seen < got || e.seq > 0 && e.seq <= got {
					t.Fatalf("%v, slot %d: %d is to be resumed from, where what comes after %d or with %d was not sent", levels, slot, got, seen, e.seq)
				}
			}
			if s.missed != nil && late {
				late = false
				resume(held, 2, 1) // while another is written
			}
		}}
		for slot = 10; slot < 22; slot++ {
			if slot%2 == 0 {
				n.script.reach(ledger.Finalized, slot-1)
			}
			n.script.block(slot, account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programA))
			if late = slot%3 == 0; late {
				for i, level := range levels {
					resume(level, 1, ledger.Seq(4-i))
				}
			}
			for written = 0; written < len(s.outbox.entries); written++ {
				next := s.outbox.entries[written]
				if next.run != nil {
					must(t, next.run())
				} else {
					must(t, s.writeOnce(batch{next.data, next.tally}))
				}
			}
			s.outbox.drain()
			if got, came := s.lastSeq(), n.hub.delivered[held]; late || got > came || written > 0 && got+6 < came {
				t.Errorf("%v, slot %d: %d is to be resumed from, where %v has come to %d", levels, slot, got, held, came)
			}
		}
		resume(held, 1, 7)
		resume(held, 2, 3)
		s.outbox.close(endSlow)
		watch(held, 1, ledger.Some[ledger.Seq](5))
		ledgertest.Equal(t, s.lastSeq(), 3, "%v: what is to be resumed from where nothing of what waited was sent", levels)
		s.conn = nil
		s.depart()
	}
}

// What a level had come to when something was sent is not known once what came next is not kept any more: it is not guessed then.
func TestWhatIsNotKeptIsNotTakenAsSent(t *testing.T) {
	n := newNode(t, func(c *Config) { c.RecentBytes = 1 })
	n.script.blocks(9)
	n.script.reach(ledger.Finalized, 3)
	n.script.publish()
	s := n.socket()
	text := func(dst []byte, _ uint64, _ *Note) []byte { return dst }
	must(t, s.Watch("", Topic{Level: ledger.Finalized, Account: ledger.Some(key(1)), Append: text}, ledger.Opt[ledger.Seq]{}, func(uint64) []byte { return nil }))
	n.script.reach(ledger.Finalized, 6)
	n.script.publish()
	if got := s.lastSeq(); got > 3 {
		t.Errorf("%d is to be resumed from, where 4 was not sent", got)
	}
	s.depart()
}
