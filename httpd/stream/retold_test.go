package stream

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// topicsTold are the topics of a watcher: an account, a program and some accounts of another, each at each level.
const topicsTold = 3 * int(ledger.Commitments)

// topicTold returns one of them, whose notes say which it is.
func topicTold(i int) Topic {
	t := Topic{Level: ledger.Commitment(i / 3), Append: func(dst []byte, number uint64, note *Note) []byte {
		return fmt.Appendf(dst, "%d %d %d %d %d %s", i, note.Seq, number, note.Slot, note.Account.Lamports, note.Account.Pubkey)
	}}
	switch i % 3 {
	case 0:
		t.Account = ledger.Some(key(3))
	case 1:
		t.Program = ledger.Some(programA)
	case 2:
		t.Program = ledger.Some(programB)
		t.Takes = func(u *ledger.Update) bool { return u.Account.Lamports%2 == 0 }
	}
	return t
}

// watcher is a client of topicsTold.
type watcher struct {
	*node
	socket *websocket.Conn
	told   [topicsTold][]string
	from   [topicsTold]ledger.Seq // after which it is told
}

const lastTold = "all was told"

// talkOfTopics answers "I SEQ", which watches a topic, with a SEQ below 0 from now on, and lastTold with the same.
func talkOfTopics(s *Socket, text []byte) {
	if string(text) == lastTold {
		s.Answer(text)
		return
	}
	var i, from int
	_, err := fmt.Sscanf(string(text), "%d %d", &i, &from)
	seen := ledger.Some(ledger.Seq(from))
	seen.Known = from >= 0
	if err == nil {
		err = s.Watch(fmt.Sprint(i), topicTold(i), seen, func(uint64) []byte { return nil })
	}
	if err != nil {
		s.Answer(fmt.Append(nil, err))
	}
}

// forgive gives all clients back what they have paid for work.
func (n *node) forgive() {
	n.hub.each(func(c *connection) {
		c.seat.work.mu.Lock()
		defer c.seat.work.mu.Unlock()
		c.seat.work.full = time.Time{}
	})
}

// say asks something. What was asked before has cost nothing.
func (w *watcher) say(format string, args ...any) {
	w.Helper()
	w.forgive()
	must(w, w.socket.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...)))
}

// connect opens a socket.
func (w *watcher) connect() {
	w.Helper()
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return w.node.connect() }}
	var err error
	w.socket, _, err = dialer.Dial("ws://ledger/", nil)
	must(w, err)
}

// watch asks for all topics from now on.
func (w *watcher) watch() {
	for i := range w.told {
		w.say("%d -1", i)
	}
}

// resume asks for topics after what it was told of each, all if it was told nothing, or after the one number that it was told as its socket ended.
func (w *watcher) resume(last ledger.Opt[ledger.Seq], topics []int) {
	for _, i := range topics {
		if w.toldAll(i); last.Known {
			w.from[i] = last.Value
		}
		w.say("%d %d", i, w.from[i])
	}
}

// toldAll notes that nothing comes again that it was told.
func (w *watcher) toldAll(i int) {
	if w.from[i] = 0; len(w.told[i]) > 0 {
		w.from[i] = seqTold(w, w.told[i][len(w.told[i])-1])
	}
}

// untilSlow returns what still came on a socket that is closed as a slow one, and the number that it was told.
func (w *watcher) untilSlow() (told [topicsTold][]string, last ledger.Seq) {
	for {
		_, text, err := w.socket.ReadMessage()
		if err != nil {
			_, failed := fmt.Sscanf(err.Error(), "websocket: close 4008: slow consumer, last_seq=%d", &last)
			must(w, failed)
			return told, last
		}
		w.add(&told, text)
	}
}

// add adds what came to what was told.
func (w *watcher) add(told *[topicsTold][]string, text []byte) {
	if i := 0; len(text) > 0 && string(text) != lastTold { // no answer
		_, err := fmt.Sscanf(string(text), "%d", &i)
		must(w, err)
		told[i] = append(told[i], string(text))
	}
}

func seqTold(t testing.TB, text string) (seq ledger.Seq) {
	t.Helper()
	var i int
	_, err := fmt.Sscanf(text, "%d %d", &i, &seq)
	must(t, err)
	return seq
}

// read returns what comes, by topic, until so much has come, or all.
func (w *watcher) read(most int) (told [topicsTold][]string, all bool) {
	w.Helper()
	w.say(lastTold)
	for range most {
		_, text, err := w.socket.ReadMessage()
		must(w, err)
		if string(text) == lastTold {
			return told, true
		}
		w.add(&told, text)
	}
	return told, false
}

// goOn holds what came on a socket against what another watcher was told, and takes it in. It begins with what was not told, or came after the number that
// was resumed from, or, at a level where numbers are shared, with what carries that.
func (w *watcher) goOn(got, whole [topicsTold][]string, all bool) {
	w.Helper()
	for i := range got {
		before := w.told[i]
		begins := func(at int) bool {
			return len(got[i]) <= len(whole[i])-at && slices.Equal(got[i], whole[i][at:at+len(got[i])]) && (!all || at+len(got[i]) == len(whole[i]))
		}
		at := len(before)
		comesAgain := func(seq ledger.Seq) bool {
			return seq > w.from[i] || seq == w.from[i] && ledger.Commitment(i/3) != ledger.Processed
		}
		for at > 0 && !begins(at) && comesAgain(seqTold(w, before[at-1])) {
			at--
		}
		if !begins(at) {
			w.Fatalf("of topic %d %q came after\n%q of\n%q", i, got[i], before, whole[i])
		}
		if w.told[i] = whole[i][:max(len(before), at+len(got[i]))]; all {
			w.toldAll(i)
		}
	}
}

// Who is told of topics, through blocks, forks and statuses in any order, and comes back after its socket ended at any frame, several at once, has in the
// end been told what another was that stayed: in order, nothing twice and nothing left out, from memory and from the log. A socket that is closed as a slow
// one is told a number after which lies all that it was not sent of any topic, and which is not lower than it has to be.
func TestWhoResumesATopicIsToldWhatItMissed(t *testing.T) {
	for seed := range uint64(ledgertest.Sample(12, 12, 6)) {
		r := rand.New(rand.NewPCG(seed, 3))
		log := &fakeHistory{}
		resumes := 0
		inMemory(t, func(c *Config) { c.History, c.RecentBytes = log, []int{1, 16 << 10, 0}[seed%3] }, func(n *node) {
			n.hub.pastBytes, n.client.Exempt = 1<<r.IntN(16), true
			log.begins = n.forgive // the log is read in far more parts than a client could pay for
			var talks *Socket
			n.talk = func(s *Socket, text []byte) {
				talks = s
				talkOfTopics(s, text)
			}
			n.script.slots, n.script.bare = 1, true
			n.script.block(1)
			stays, goes := &watcher{node: n}, &watcher{node: n}
			for _, w := range []*watcher{stays, goes} {
				w.connect()
				w.watch()
				w.read(math.MaxInt) // nothing, but it watches then
			}
			here := true
			var last ledger.Opt[ledger.Seq] // that it was told as it was closed
			for step := range 100 {
				for range 1 + r.IntN(4) {
					n.script.step(r)
				}
				n.script.publish()
				time.Sleep(time.Second) // of the bubble, in which a client may say some things
				new, _ := stays.read(math.MaxInt)
				for i := range new {
					stays.told[i] = append(stays.told[i], new[i]...)
				}
				if !here && (step == 99 || r.IntN(3) == 0) {
					goes.connect()
					goes.resume(last, r.Perm(topicsTold))
					here, last = true, ledger.Opt[ledger.Seq]{}
					resumes++
				}
				if !here {
					continue
				}
				most := math.MaxInt
				if here = step == 99 || r.IntN(3) > 0; !here {
					most = r.IntN(120)
				}
				got, all := goes.read(most)
				goes.goOn(got, stays.told, all)
				if !here && r.IntN(2) == 0 {
					synctest.Wait() // until it was asked
					talks.outbox.close(endSlow)
					n.script.step(r)
					n.script.publish()
					rest, seq := goes.untilSlow()
					low := slices.Min(goes.from[:])
					if goes.goOn(rest, stays.told, false); seq+1 < low {
						n.Fatalf("seed %d: %d is to be resumed from, where all was told up to %d", seed, seq, low)
					}
					last = ledger.Some(seq)
				}
				if !here {
					must(n, goes.socket.Close())
				}
			}
			ledgertest.Equal(n, goes.told, stays.told, "seed %d: what was told in the end", seed)
			must(n, stays.socket.Close())
			must(n, goes.socket.Close())
		})
		if resumes < 5 {
			t.Errorf("seed %d: %d resumes show little", seed, resumes)
		}
	}
}

// A backlog that is read part by part is resumed from what was sent of it.
func TestABacklogIsResumedFromItsMiddle(t *testing.T) {
	inMemory(t, func(c *Config) { c.History, c.RecentBytes = &fakeHistory{}, 1 }, func(n *node) {
		n.hub.pastBytes = 1
		n.script.blocks(9)
		var server *Socket
		topic := topicTold(0)
		topic.Account = ledger.Some(key(1)) // which each block changes
		n.talk = func(s *Socket, _ []byte) {
			server = s
			must(n, s.Watch("", topic, ledger.Some[ledger.Seq](0), func(uint64) []byte { return nil }))
		}
		w := &watcher{node: n}
		w.connect()
		w.say("watch")
		for range 4 { // the answer, and three updates
			_, _, err := w.socket.ReadMessage()
			must(n, err)
		}
		synctest.Wait()
		server.outbox.close(endSlow)
		told, last := w.untilSlow()
		ledgertest.Equal(n, []any{len(told[0]), last}, []any{1, ledger.Seq(4)}, "updates that came yet, and from where to resume")
		must(n, w.socket.Close())
	})
}

// A replay asks for the mints of some emissions at a time, however many it tells of.
func TestAReplayAsksForItsMintsInParts(t *testing.T) {
	const blocks = 3*decimalsBatch + 1
	inMemory(t, nil, func(n *node) {
		n.talk = func(s *Socket, _ []byte) {
			topic := Topic{Program: ledger.Some(ledger.TokenProgram), Tokens: true, Append: func(dst []byte, _ uint64, note *Note) []byte {
				return fmt.Append(dst, note.Seq)
			}}
			must(n, s.Watch("", topic, ledger.Some[ledger.Seq](0), func(uint64) []byte { return []byte("watched") }))
		}
		for i := range blocks {
			n.script.block(ledger.Slot(i+1), tokenAccount(i, key(100+i), key(9), 1))
		}
		w := &watcher{node: n}
		w.connect()
		w.say("watch")
		for range 1 + blocks {
			_, _, err := w.socket.ReadMessage()
			must(n, err)
		}
		var questions []int
		for _, mints := range n.ledger.askedFor {
			questions = append(questions, len(mints))
		}
		ledgertest.Equal(n, questions, []int{decimalsBatch, decimalsBatch, decimalsBatch, 1}, "mints in each question")
		must(n, w.socket.Close())
	})
}

// What is told of a topic to one client alone is paid for by it: each update that is looked at, of an account one a block, and the data. Of token accounts
// it asks for the mints of those alone that it is told of, whatever others came.
func TestAReplayOfATopicIsPaidFor(t *testing.T) {
	for _, tt := range []struct {
		topic Topic
		looks time.Duration // for each block: at it, and at updates
		fails error         // the ledger, which is then asked once
	}{
		{Topic{Account: ledger.Some(key(3))}, 2, nil},
		{Topic{Account: ledger.Some(key(3))}, 2, ledger.ErrUnavailable},
		{Topic{Program: ledger.Some(ledger.TokenProgram), Takes: func(u *ledger.Update) bool { return u.Account.Pubkey == key(3) }}, 4, nil},
	} {
		inMemory(t, nil, func(n *node) {
			tt.topic.Tokens, tt.topic.Append = true, func(dst []byte, _ uint64, note *Note) []byte {
				return fmt.Append(dst, note.Seq, note.Account.Token.Amount, note.Decimals)
			}
			n.talk = func(s *Socket, _ []byte) {
				must(n, s.Watch("", tt.topic, ledger.Some[ledger.Seq](0), func(uint64) []byte { return []byte("watched") }))
			}
			const data = 1 << 20                // bytes
			for slot := range ledger.Slot(40) { // which are asked for in several questions where all are
				told := tokenAccount(3, mintA, key(9), uint64(slot))
				if slot == 7 {
					told.Known, told.Data = told.Known|ledger.FieldData, ledger.NewData(make([]byte, data))
				}
				n.script.block(slot+1, told, tokenAccount(4, mintB, key(9), 1), tokenAccount(5+int(slot), key(100+int(slot)), key(9), 1))
			}
			decimals := ledger.Some[uint8](6)
			if n.ledger.mintsErr = tt.fails; tt.fails != nil {
				decimals = ledger.Opt[uint8]{}
			}
			place := n.budget()
			w := &watcher{node: n}
			w.connect()
			w.say("watch")
			want := "watched"
			for i := range 41 {
				_, text, err := w.socket.ReadMessage()
				must(n, err)
				ledgertest.Equal(n, string(text), want, "what is told")
				want = fmt.Sprint(ledger.Seq(3*i+1), uint64(i), decimals)
			}
			if asked := n.ledger.askedFor; len(asked) != 1 || !slices.Equal(asked[0], []ledger.Pubkey{mintA}) {
				n.Errorf("%v: asked for mints %v, want %v", tt.topic.Program, asked, mintA)
			}
			cost := 40*tt.looks*updatePrice + data*dataPrice + foundCost(1) + messageCost(len("watch"))
			if spent := workBurst - place.work.left(); (spent - cost).Abs() > time.Microsecond {
				n.Errorf("%v: %v were paid, want %v", tt.topic.Program, spent, cost)
			}
			must(n, w.socket.Close())
		})
	}
}
