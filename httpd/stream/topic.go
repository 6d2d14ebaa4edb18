package stream

import (
	"errors"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/figures"
	"ledgerd/engine/ledger"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/stream/frame"
)

// Topic is a subscription that several clients share, with the same encoding: to the updates of an account, to those of the accounts
// of a program, to the block of a transaction, or to the blocks of a level.
type Topic struct {
	Kind    string // what it is called by those who take it back
	Level   ledger.Commitment
	Account ledger.Opt[ledger.Pubkey]
	Program ledger.Opt[ledger.Pubkey]
	// Signature is that of a transaction. The topic is notified once, when a block of the level has the transaction, and ends.
	Signature ledger.Opt[ledger.Signature]
	Received  bool // it is also notified before that, each time that a block has the transaction
	Tokens    bool // notes of token accounts have decimals
	// Takes reports whether an update is sent; nil: all are. A client may have only maxFiltered topics with it, since it is called for
	// each update of its program. It is called with the hub's lock held, as Append is, and concurrently by writers of sockets that resume.
	Takes func(u *ledger.Update) bool
	// Append appends the notification of a note under the topic's number.
	Append func(dst []byte, number uint64, note *Note) []byte
}

// Note is an update, a transaction or a block that a topic is notified of.
type Note struct {
	Slot        ledger.Slot
	Seq         ledger.Seq
	Account     *ledger.Account     // of an update; nil: it is of a block
	Transaction *ledger.Transaction // that the block has, if it is of one
	Received    bool                // of a transaction: the topic is notified again at its level
	Decimals    ledger.Opt[uint8]   // of a token account's mint, if a topic wants tokens and the ledger knows them
	Parent      ledger.Slot         // of a block: the one that it follows
	Root        ledger.Slot         // the newest finalized block
}

// of makes it the note of an update.
func (n *Note) of(e *emission, part int) {
	n.Slot, n.Seq, n.Account = e.slot, e.seq(part), &e.updates[part].Account
	n.Decimals = e.decimals.Load().of(n.Account)
}

// name returns the name of the updates that a topic is about. The key is nil if it is about none.
func (t *Topic) name() name {
	switch {
	case t.Account.Known:
		return name{pubkeys, &t.Account.Value}
	case t.Program.Known:
		return name{programs, &t.Program.Value}
	}
	return name{}
}

// topic is a Topic that has watchers.
type topic struct {
	Topic
	key      string
	number   uint64
	watchers map[*Socket]struct{}
}

// Socket is a connection whose client asks for topics.
type Socket struct {
	connection
	talk     func(*Socket, []byte)
	refusals bucket // talk's
	// The hub's lock guards the rest.

	topics map[uint64]*topic
}

// ErrManyTopics says that a connection has as many topics as it may have, or its client as many with Takes.
var ErrManyTopics = errors.New("more than 10000 subscriptions, or 256 with filters or a dataSlice")

// Resync says that what a client has missed is not held, or has not come yet: it can resume from the oldest seq up to the newest.
type Resync struct{ Oldest, Newest ledger.Seq }

func (e *Resync) Error() string { return "resync required" }

// maxFiltered is how many topics with Takes one client may have. A program that is written a thousand times a second then costs a few
// hundredths of a core.
const maxFiltered = 256

// Accept makes the request a socket, as Upgrade makes it a subscriber. talk answers its messages, one at a time.
func (h *Hub) Accept(ctx *fasthttp.RequestCtx, client ratelimit.Client, talk func(s *Socket, text []byte)) error {
	return h.upgrade(ctx, client, 0, nil, func(place *seat) *connection { return &h.newSocket(place, talk).connection })
}

// newSocket makes a socket without a connection of the network, see open.
func (h *Hub) newSocket(place *seat, talk func(*Socket, []byte)) *Socket {
	s := &Socket{talk: talk, topics: make(map[uint64]*topic)}
	s.open(h, s, place)
	h.mu.Lock()
	defer h.mu.Unlock()
	s.enterLocked()
	return s
}

// Answer sends the client a message that belongs to no topic. It is called within talk.
func (s *Socket) Answer(payload []byte) { s.outbox.put(nil, message("%s", payload)) }

// Refuse sends the answer to a refused request. web3.js retries a refused subscription at once and without end, and would use up what
// pays for the messages of its other ones: beyond a hundred, refusals are sent 20 a second, and the reader of the connection waits for
// each, so further messages of the client are delayed too.
func (s *Socket) Refuse(payload []byte) {
	for !s.refusals.takeToken() {
		select {
		case <-s.outbox.ctx.Done():
			return
		case <-time.After(time.Second / budgetPerSecond):
		}
	}
	s.Answer(payload)
}

// PayLookup charges the client for reading some accounts of a program. After an error the connection ends.
func (s *Socket) PayLookup(accounts int) error {
	if !s.pay(programPrice + foundCost(accounts)) {
		return &endRate
	}
	return nil
}

// Watch subscribes the client to a topic, after sending it what answer returns for the topic's number. Topics with the same key are
// one topic. With seen, the client is sent in between what it missed of the topic since the update of that seq. A Resync says that the
// client has to start over, ErrManyTopics that it may have no more topics. After any other error the connection ends.
func (s *Socket) Watch(key string, t Topic, seen ledger.Opt[ledger.Seq], answer func(number uint64) []byte) error {
	h := s.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	newest := h.positionLocked(t.Level).seq
	if oldest := h.oldestLocked(t.Level, newest); seen.Known && (seen.Value < oldest || seen.Value > newest) {
		h.meters.resumes["refused"].Inc()
		return &Resync{oldest, newest}
	}
	shared := h.topics[key]
	if shared == nil || s.topics[shared.number] == nil {
		switch {
		case len(s.topics) >= maxNames || t.Takes != nil && s.seat.filtered >= maxFiltered:
			return ErrManyTopics
		case !s.takeNames(namesIn(key)):
			s.outbox.close(endMemory)
			return &endMemory
		}
		s.seat.filtered += int(figures.One(t.Takes != nil))
	}
	if shared == nil {
		h.lastTopic++
		shared = &topic{Topic: t, key: key, number: h.lastTopic, watchers: make(map[*Socket]struct{})}
		h.topics[key] = shared
		h.changeLocked(shared, true)
	}
	shared.watchers[s], s.topics[shared.number] = struct{}{}, shared
	s.Answer(answer(shared.number))
	if !seen.Known {
		return nil
	}
	missed := h.missedLocked(t.Level, seen.Value, newest, &retold{Topic: &shared.Topic, number: shared.number, work: &s.seat.work, mints: make(mints)})
	if s.pay(missed.cost()) {
		s.replayLocked(nil, missed, newest)
	}
	return nil
}

// changeLocked enters a topic at its levels, or takes it out.
func (h *Hub) changeLocked(t *topic, in bool) {
	h.levels[t.Level].changeTopic(t, in)
	if t.Received && t.Level != ledger.Processed {
		h.levels[ledger.Processed].changeTopic(t, in)
	}
	h.tokens.put(t, in && t.Tokens)
}

// namesIn returns as how many names the memory of a topic counts: its key is there twice, as a text and as what the topic takes.
func namesIn(key string) int { return 1 + 2*len(key)/nameBytes }

// Tell sends a notification of a topic to this client alone, unless the topic has ended for it, and ends the topic for it if ends.
func (s *Socket) Tell(number uint64, payload []byte, ends bool) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	t := s.topics[number]
	if t == nil {
		return
	}
	s.Answer(payload)
	if ends {
		s.unwatchLocked(t)
	}
}

// Unwatch ends the client's subscription to a topic of a kind, and reports whether there was one.
func (s *Socket) Unwatch(kind string, number uint64) bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	t := s.topics[number]
	if t == nil || t.Kind != kind {
		return false
	}
	s.unwatchLocked(t)
	return true
}

func (s *Socket) unwatchLocked(t *topic) {
	delete(s.topics, t.number)
	delete(t.watchers, s)
	s.giveNames(namesIn(t.key))
	s.seat.filtered -= int(figures.One(t.Takes != nil))
	if len(t.watchers) == 0 {
		delete(s.hub.topics, t.key)
		s.hub.changeLocked(t, false)
	}
}

// handle answers a message, of which each names one topic: a library sends hundreds at once, and all of them again when it is connected anew.
// So they are bounded by what they cost alone.
func (s *Socket) handle(text []byte) {
	if s.pay(messageCost(len(text))) {
		s.frames.giveToken()
		s.talk(s, text)
	}
}

func (s *Socket) tick(time.Time)                {}
func (s *Socket) warning(time.Duration) *packet { return nil }

func (s *Socket) wanted() string {
	if len(s.topics) > 0 {
		return "keys"
	}
	return "nothing"
}

// sentLocked goes by the levels of the topics, which have each come to another seq, and by the backlog that is being written.
func (s *Socket) sentLocked() ledger.Seq {
	last := s.hub.positionLocked(ledger.Processed).seq
	for _, t := range s.topics {
		last = min(last, s.hub.positionLocked(t.Level).seq)
	}
	if s.missed != nil {
		last = min(last, s.sent)
	}
	return last
}

// leave ends all topics.
func (s *Socket) leave() {
	s.hub.inParts(func() (more bool) {
		left := namesAtOnce
		for _, t := range s.topics {
			if left--; left < 0 {
				return true
			}
			s.unwatchLocked(t)
		}
		return false
	})
}

// topics are those of one level that have no name. The hub's lock guards them.
type topics struct {
	signatures index[ledger.Signature, *topic]
	blocks     watchers[*topic]
}

// changeTopic enters a topic or takes it out, in the same time however many there are.
func (a *audience) changeTopic(t *topic, in bool) {
	n := t.name()
	switch {
	case t.Signature.Known:
		a.topics.signatures.put([]ledger.Signature{t.Signature.Value}, t, in)
	case n.key == nil && in:
		a.topics.blocks.add(t)
	case n.key == nil:
		a.topics.blocks.remove(t)
	default:
		a.indexes[n.kind].put([]ledger.Pubkey{*n.key}, t, in)
	}
}

// deliver notifies the topics of blocks and transactions of an emission, if it is one of a block.
func (ts *topics) deliver(e *emission, root ledger.Slot) {
	if e.block == nil {
		return
	}
	note := Note{Slot: e.slot, Seq: e.lastSeq, Parent: e.block.ParentSlot, Root: root}
	for _, t := range ts.blocks.list {
		t.send(e, e.ending(), &note)
	}
	if len(ts.signatures) > 0 {
		ts.deliverTransactions(e, note)
	}
}

// deliverTransactions notifies the topics of the transactions in a block. Those of its level end.
func (ts *topics) deliverTransactions(e *emission, note Note) {
	for i := range e.block.Transactions {
		note.Transaction = &e.block.Transactions[i]
		for _, t := range slices.Clone(ts.signatures.at(&note.Transaction.Signature)) { // which those leave that end
			if note.Received = true; t.Received && e.level == ledger.Processed {
				t.send(e, e.ending(), &note)
			}
			if note.Received = false; t.Level == e.level {
				t.send(e, e.ending(), &note)
				for s := range t.watchers {
					s.unwatchLocked(t)
				}
			}
		}
	}
}

// showsData returns true, since Append decides what an update contains.
func (t *topic) showsData() bool { return true }

// deliverMatch sends an update that the topic takes, unless the topic is of a program that has lost the account. The topic has one
// name, and an update has that name once, since the owner before it differs from the one after it.
func (t *topic) deliverMatch(e *emission, i int, n name) {
	if u := &e.updates[i]; n.hasLost(&u.Account) || t.Takes != nil && !t.Takes(u) {
		return
	}
	var note Note
	note.of(e, i)
	t.send(e, i, &note)
}

// send has a note waiting for all watchers, as one packet.
func (t *topic) send(e *emission, part int, note *Note) {
	data := frame.AppendText(nil, func(b []byte) []byte { return t.Append(b, t.number, note) })
	p := &packet{data: data, tally: e.tally(part), update: true}
	for s := range t.watchers {
		s.outbox.put(nil, p)
	}
}
