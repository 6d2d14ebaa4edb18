package stream

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
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
	}
	ledgertest.Equal(t, n.leftovers(), "", "what is left")
}

// sink is a socket that takes all.
type sink struct {
	net.Conn
	text bytes.Buffer
}

func (s *sink) SetWriteDeadline(time.Time) error  { return nil }
func (s *sink) Write(b []byte) (n int, err error) { return s.text.Write(b) }

// A socket that is closed as a slow one is told a number from which all can be resumed that it was not sent, whatever it waited for, of whatever levels, and
// whatever came until it is told. The number is hardly lower than that. What a socket resumes it lacks since the number that it named.
func TestTopicsResumeFromWhatASlowSocketIsTold(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		n := newNode(t, nil)
		s, sent := n.socket(), &sink{}
		s.conn = sent
		type note struct {
			level ledger.Commitment
			k     int // of the account: each block changes two, so that seqs tell them
			seq   ledger.Seq
		}
		owed, watched := map[note]int{}, map[note]bool{} // watched have no seq
		var reached [ledger.Commitments]ledger.Seq
		owe := func(level ledger.Commitment, k int, from ledger.Seq) {
			for seq := from + 1; seq <= reached[level]; seq++ {
				if int(seq+1)%2+1 == k {
					owed[note{level, k, seq}]++
				}
			}
		}
		watch := func(resumes bool) {
			level, k := ledger.Commitment(r.IntN(int(ledger.Commitments))), 1+r.IntN(2)
			seen := ledger.Opt[ledger.Seq]{Known: resumes, Value: ledger.Seq(r.IntN(int(reached[level]) + 1))}
			topic := Topic{Level: level, Account: ledger.Some(key(k)), Append: func(dst []byte, _ uint64, told *Note) []byte {
				return fmt.Appendf(dst, "[%d %d %d]", level, k, told.Seq)
			}}
			must(t, s.Watch(fmt.Sprint(level, k), topic, seen, func(uint64) []byte { return nil }))
			if watched[note{level, k, 0}] = true; resumes {
				owe(level, k, seen.Value)
			}
		}
		goOn := func(level ledger.Commitment) {
			was, slot := reached, reached[ledger.Processed]/2
			if level == ledger.Processed {
				slot++
				n.script.block(ledger.Slot(slot), account(1, ledger.Lamports(slot), programA), account(2, ledger.Lamports(slot), programA))
			} else if slot > 0 {
				n.script.reach(level, ledger.Slot(slot))
				n.script.publish()
			}
			for at := range level + 1 {
				reached[at] = 2 * slot
			}
			for one := range watched {
				owe(one.level, one.k, was[one.level])
			}
		}
		for range 30 {
			switch r.IntN(6) {
			case 0, 1:
				watch(r.IntN(2) == 0)
			case 2:
				goOn(ledger.Commitment(r.IntN(int(ledger.Commitments))))
			case 3:
				if next := s.outbox.take(0); next.run != nil || next.frames > 0 {
					must(t, s.writeTaken(&next))
				}
			default:
				goOn(ledger.Processed)
			}
		}
		s.outbox.close(endSlow)
		if r.IntN(2) == 0 {
			goOn(ledger.Finalized)
		}
		low, got := slices.Min(reached[:]), s.lastSeq()
		goOn(ledger.Processed)
		goOn(ledger.Finalized)
		for _, text := range noteText.FindAllString(sent.text.String(), -1) {
			var one note
			_, err := fmt.Sscanf(text, "[%d %d %d]", &one.level, &one.k, &one.seq)
			must(t, err)
			owed[one]--
		}
		for one, times := range owed {
			if times > 0 {
				low = min(low, one.seq)
			}
			if times < 0 || times > 0 && one.seq <= got {
				t.Errorf("seed %d: %d is to be resumed from, where %v was sent %d times too few", seed, got, one, times)
			}
		}
		if got+2 < low {
			t.Errorf("seed %d: %d is to be resumed from, where all was sent below %d", seed, got, low)
		}
	}
}

var noteText = regexp.MustCompile(`\[\d+ \d+ \d+\]`)
