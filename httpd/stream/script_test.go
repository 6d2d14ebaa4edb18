package stream

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/httpdtest"
)

// script writes the log that a hub is told of, and the ledger beside it.
type script struct {
	hub    *Hub
	ledger *fakeLedger

	version ledger.Version
	seq     ledger.Seq
	chain   []point // the present chain, oldest first
	levels  [ledger.Commitments]int
	staged  []*ledger.Record
	state   state // at the processed tip

	slots ledger.Slot // the newest slot a random step has used
	bare  bool        // random steps write accounts of which only lamports are known

	history *fakeHistory // nil: none
}

// point is a block of the chain and the state after it.
type point struct {
	tip   ledger.Tip
	state state
}

// state is all live accounts. It is replaced, never changed.
type state map[ledger.Pubkey]ledger.Account

func newScript(h *Hub, l *fakeLedger) *script { return &script{hub: h, ledger: l, state: state{}} }

// at is the time of the block at a slot.
func at(slot ledger.Slot) ledger.Opt[int64] {
	return ledger.Some(time.Date(2026, 2, 5, 12, 0, 0, 0, time.UTC).Unix() + int64(slot))
}

// iso is the same as clients read it.
func iso(slot ledger.Slot) string {
	return time.Unix(at(slot).Value, 0).UTC().Format(time.RFC3339)
}

// key returns a key that sorts by n.
func key(n int) (k ledger.Pubkey) {
	k[0], k[1], k[2], k[31] = byte(n>>16), byte(n>>8), byte(n), 7
	return k
}

// account returns an account of which everything shown is known.
func account(n int, lamports ledger.Lamports, owner ledger.Pubkey) ledger.Account {
	if lamports == 0 {
		return ledger.Account{Pubkey: key(n)}
	}
	return ledger.Account{Pubkey: key(n), Lamports: lamports, Owner: owner, Known: ledger.FieldsShown}
}

// accounts returns so many of them, all of programA.
func accounts(first, count int, lamports ledger.Lamports) (all []ledger.Account) {
	for n := range count {
		all = append(all, account(first+n, lamports, programA))
	}
	return all
}

// programs that own the accounts of tests.
var programA, programB = key(1 << 20), key(1<<20 + 1)

// append stages a block with these accounts after it.
func (s *script) append(slot ledger.Slot, accounts ...ledger.Account) *ledger.Record {
	s.version++
	r := &ledger.Record{
		Version: s.version, Kind: ledger.BlockRecord, Slot: slot, Time: at(slot), FirstSeq: s.seq + 1,
		Updates: s.move(accounts),
	}
	s.seq = r.LastSeq()
	s.staged = append(s.staged, r)
	tip := ledger.Tip{Version: r.Version, Slot: slot, Seq: s.seq, Time: r.Time}
	s.chain = append(s.chain, point{tip, s.state})
	s.levels[ledger.Processed] = len(s.chain) - 1
	return r
}

// move changes the state and returns the updates that do so, in pubkey order.
func (s *script) move(accounts []ledger.Account) []ledger.Update {
	next := maps.Clone(s.state)
	var updates []ledger.Update
	for _, a := range accounts {
		u := ledger.Update{Account: a}
		if was, ok := next[a.Pubkey]; ok && was.Known&ledger.FieldOwner != 0 && (a.Known&ledger.FieldOwner == 0 || was.Owner != a.Owner) {
			u.OwnerBefore = ledger.Some(was.Owner)
		}
		if t := next[a.Pubkey].Token; t != nil && (a.Token == nil || a.Token.Owner != t.Owner) {
			u.WalletBefore = ledger.Some(t.Owner)
		}
		if was, ok := next[a.Pubkey]; ok {
			u.DataBefore = ledger.DataBefore(&was, &a)
		}
		updates = append(updates, u)
		if a.Exists() {
			next[a.Pubkey] = a
		} else {
			delete(next, a.Pubkey)
		}
	}
	slices.SortFunc(updates, func(a, b ledger.Update) int { return a.Account.Pubkey.Compare(&b.Account.Pubkey) })
	s.state = next
	return updates
}

// rollBack stages the way back to the block at a slot.
func (s *script) rollBack(to ledger.Slot) *ledger.Record {
	keep := slices.IndexFunc(s.chain, func(p point) bool { return p.tip.Slot == to })
	before, ancestor := s.state, s.chain[keep].state
	touched := map[ledger.Pubkey]bool{}
	for _, p := range s.chain[keep+1:] {
		for k, a := range p.state {
			touched[k] = touched[k] || ancestor[k] != a
		}
		for k := range ancestor {
			if _, ok := p.state[k]; !ok {
				touched[k] = true
			}
		}
	}
	var changed, unchanged []ledger.Account
	for k, yes := range touched {
		now, ok := ancestor[k]
		if !ok {
			now = ledger.Account{Pubkey: k}
		}
		if was, had := before[k]; yes && (had != ok || was != now && had) {
			changed = append(changed, now)
		} else if yes {
			unchanged = append(unchanged, now)
		}
	}
	slices.SortFunc(unchanged, func(a, b ledger.Account) int { return bytes.Compare(a.Pubkey[:], b.Pubkey[:]) })
	s.version++
	r := &ledger.Record{
		Version: s.version, Kind: ledger.RollbackRecord, Slot: to, Time: at(to), FromSlot: s.chain[len(s.chain)-1].tip.Slot,
		FirstSeq: s.seq + 1, Updates: s.move(changed), Unchanged: unchanged,
	}
	s.seq = r.LastSeq()
	s.staged = append(s.staged, r)
	s.chain = s.chain[:keep+1]
	for i := range s.levels {
		s.levels[i] = min(s.levels[i], keep)
	}
	return r
}

// reach stages that the block at a slot has reached a level.
func (s *script) reach(level ledger.Commitment, slot ledger.Slot) {
	s.version++
	s.staged = append(s.staged, &ledger.Record{Version: s.version, Kind: ledger.StatusRecord, Slot: slot})
	at := slices.IndexFunc(s.chain, func(p point) bool { return p.tip.Slot == slot })
	for l := ledger.Confirmed; l <= level; l++ {
		s.levels[l] = max(s.levels[l], at)
	}
}

// publish tells what was staged, as one publication, and waits until it is delivered.
func (s *script) publish() {
	s.publishNow()
	for s.hub.isDelivering() {
		runtime.Gosched()
	}
}

func (h *Hub) isDelivering() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.delivering
}

func (s *script) publishNow() {
	head := &ledger.Head{HasBlock: true, Published: time.Now()}
	states := [ledger.Commitments]state{}
	for i, at := range s.levels {
		head.Tips[i], states[i] = s.chain[at].tip, s.chain[at].state
	}
	head.Tips[ledger.Processed].Version, head.Tips[ledger.Processed].Seq = s.version, s.seq
	s.ledger.add(head, states)
	p := &ledger.Publication{Head: head, Records: s.staged}
	s.staged = nil
	s.history.add(p)
	s.hub.Publish(p)
}

// block appends and publishes a block.
func (s *script) block(slot ledger.Slot, accounts ...ledger.Account) {
	s.append(slot, accounts...)
	s.publish()
}

// blocks publishes the first blocks there are: in each slot an account changes, so that its seq is the slot.
func (s *script) blocks(count ledger.Slot) {
	for slot := range count {
		s.block(slot+1, account(1, ledger.Lamports(slot+1), programA))
	}
}

// fakeLedger answers from the states that a script published.
type fakeLedger struct {
	mu    sync.Mutex
	heads map[*ledger.Head][ledger.Commitments]state

	// asked, if set, is called before every answer about accounts, without a lock; its error is answered.
	asked func() error

	mints    map[ledger.Pubkey]*ledger.Mint
	mintsGo  chan struct{} // if set, Mints waits until it is closed
	mintsErr error
	askedFor [][]ledger.Pubkey // by each call of Mints
}

func newFakeLedger() *fakeLedger {
	return &fakeLedger{heads: make(map[*ledger.Head][ledger.Commitments]state)}
}

func (f *fakeLedger) add(head *ledger.Head, states [ledger.Commitments]state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heads[head] = states
}

// at returns the ledger as a query is to find it.
func (f *fakeLedger) at(q ledger.Query) *httpdtest.Ledger {
	var err error
	if f.asked != nil {
		err = f.asked()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	states, ok := f.heads[q.Head]
	if !ok && err == nil {
		err = errors.New("asked for a head that was never published")
	}
	return &httpdtest.Ledger{Held: states[q.Commitment], Ask: func(q ledger.Query) (ledger.View, error) {
		return ledger.View{Head: q.Head, Commitment: q.Commitment}, err
	}}
}

func (f *fakeLedger) Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error) {
	return f.at(q).Accounts(q, keys)
}

func (f *fakeLedger) Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	where := q.Where
	if q.Where = nil; where != nil {
		limit = 2 // looked at, however few match
	}
	page, next, view, err := f.at(q).Program(q, program, after, limit, room)
	return slices.DeleteFunc(page, func(a ledger.Account) bool { return where != nil && !where.Match(&a) }), next, view, err
}

func (f *fakeLedger) Tokens(q ledger.Query, wallet ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
	return f.at(q).Tokens(q, wallet, after, limit, room)
}

func (f *fakeLedger) Mints(q ledger.Query, keys []ledger.Pubkey) ([]*ledger.Mint, ledger.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if waits := f.mintsGo; waits != nil {
		f.mu.Unlock()
		<-waits
		f.mu.Lock()
	}
	view := ledger.View{Head: q.Head, Commitment: q.Commitment}
	if _, ok := f.heads[q.Head]; !ok {
		return nil, view, fmt.Errorf("asked for a head that was never published")
	}
	f.askedFor = append(f.askedFor, slices.SortedFunc(slices.Values(keys), func(a, b ledger.Pubkey) int { return a.Compare(&b) }))
	out := make([]*ledger.Mint, len(keys))
	for i, k := range keys {
		out[i] = f.mints[k]
	}
	return out, view, f.mintsErr
}

// basic is the frame of an account in a block, as the original interface has it.
func basicFrame(a ledger.Account, slot ledger.Slot) string {
	return fmt.Sprintf(`{"type":"account_update","pubkey":"%s","lamports":%d,"timestamp":"%s"}`, a.Pubkey, a.Lamports, iso(slot))
}

// extendedFrame is the same with all that extended adds.
func extendedFrame(a ledger.Account, slot ledger.Slot, seq ledger.Seq, level string) string {
	owner := ""
	if a.Known&ledger.FieldOwner != 0 {
		owner = a.Owner.String()
	}
	return fmt.Sprintf(`{"type":"account_update","pubkey":"%s","lamports":%d,"timestamp":"%s","slot":%d,"seq":%d,"owner":"%s","executable":%t,"commitment":"%s"}`,
		a.Pubkey, a.Lamports, iso(slot), slot, seq, owner, a.Executable, level)
}

func slotEnd(slot ledger.Slot, seq ledger.Seq) string {
	return fmt.Sprintf(`{"type":"slot_end","slot":%d,"seq":%d}`, slot, seq)
}

// nextSlot returns the slot after the tip.
func (s *script) nextSlot() ledger.Slot {
	if len(s.chain) == 0 {
		return 1
	}
	return s.chain[len(s.chain)-1].tip.Slot + 1
}
