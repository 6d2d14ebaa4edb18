package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
)

const (
	witnesses        = 16 // accounts that every block stamps, all over the key space
	witnessHoldings  = 8  // token accounts that every block stamps
	witnessPurses    = 24 // accounts that pay each other
	witnessPurse     = 1_000_000
	witnessPerBlock  = 3 // transactions
	witnessFinality  = 10
	witnessConfirmed = 3
)

var (
	witnessProgram = key(700_001)
	witnessWallet  = key(700_002)
	witnessMint    = key(700_003)
)

// witnessBlock is a block with its stamp: a number no other block has, on any branch.
type witnessBlock struct {
	*ledger.Block
	stamp  int
	parent *witnessBlock
	purses [witnessPurses]ledger.Lamports
}

// witnessStream is a stream of blocks with forks, each of which says in many places at once
// which block it is.
type witnessStream struct {
	r      *rand.Rand
	events []ledger.Event
	byHash map[ledger.Hash]*witnessBlock
}

func newWitnessStream(seed uint64, blocks int) *witnessStream {
	s := &witnessStream{r: rand.New(rand.NewPCG(seed, 7)), byHash: make(map[ledger.Hash]*witnessBlock)}
	tip := s.block(nil, 100)
	for len(s.byHash) < blocks {
		if s.r.IntN(6) > 0 {
			tip = s.block(tip, tip.Slot+1+ledger.Slot(s.r.IntN(6)/5))
		} else {
			tip = s.fork(tip)
		}
		s.say(tip, witnessConfirmed, ledger.StatusConfirmed)
		s.say(tip, witnessFinality, ledger.StatusFinalized)
	}
	return s
}

// fork makes a branch that loses to a higher slot, dies, or loses to a status.
func (s *witnessStream) fork(tip *witnessBlock) *witnessBlock {
	lost := tip
	for range 1 + s.r.IntN(3) {
		lost = s.block(lost, lost.Slot+1)
	}
	switch s.r.IntN(3) {
	case 0:
		return s.block(tip, lost.Slot+1)
	case 1:
		for lost.parent != tip {
			lost = lost.parent
		}
		s.events = append(s.events, status(lost.Block, ledger.StatusDead))
		return s.block(tip, lost.Slot+5)
	}
	won := s.block(tip, tip.Slot+1)
	s.events = append(s.events, status(won.Block, ledger.StatusConfirmed))
	return won
}

// block makes the next block: it stamps every witness and moves lamports between purses.
func (s *witnessStream) block(parent *witnessBlock, slot ledger.Slot) *witnessBlock {
	b := &witnessBlock{stamp: 1000 + len(s.byHash), parent: parent}
	if parent == nil {
		b.Block = rootBlock(slot)
		for i := range b.purses {
			b.purses[i] = witnessPurse
			b.Accounts = append(b.Accounts, lamports(key(600_000+i), witnessPurse))
		}
	} else {
		b.Block, b.purses = child(parent.Block, slot, 0), parent.purses
	}
	b.Blockhash = hash(b.stamp)
	for i := range witnesses {
		b.Accounts = append(b.Accounts, owned(key(500_000+i), ledger.Lamports(b.stamp), witnessProgram))
	}
	for i := range witnessHoldings {
		b.Accounts = append(b.Accounts, holding(key(510_000+i), witnessMint, witnessWallet, uint64(b.stamp)))
	}
	for i := range witnessPerBlock {
		from, to := s.r.IntN(witnessPurses), s.r.IntN(witnessPurses)
		amount := ledger.Lamports(s.r.IntN(int(b.purses[from] - 1)))
		b.purses[from] -= amount
		b.purses[to] += amount
		for _, at := range []int{from, to} {
			b.Accounts = append(b.Accounts, lamports(key(600_000+at), b.purses[at]))
		}
		b.AddTransaction(ledger.Transaction{Signature: signature(b.stamp*witnessPerBlock + i)})
	}
	s.byHash[b.Blockhash] = b
	s.events = append(s.events, b.Block)
	return b
}

// say raises the block so many blocks below the tip.
func (s *witnessStream) say(b *witnessBlock, depth int, st ledger.Status) {
	for range depth {
		if b = b.parent; b == nil {
			return
		}
	}
	s.events = append(s.events, status(b.Block, st))
}

// flatOut is a source that shows a stream as fast as it is taken, or so many events at a time
// with a pause after each.
type flatOut struct {
	stream *witnessStream
	burst  int
	pause  time.Duration
}

func (s *flatOut) Info() ledger.SourceInfo {
	return ledger.SourceInfo{Name: "flat out", Finite: true, Complete: true}
}
func (s *flatOut) Peers() int { return 1 }

func (s *flatOut) Run(ctx context.Context, _ *ledger.ResumePoint, emit ledger.Emit) error {
	for i, e := range s.stream.events {
		if err := emit(ctx, e); err != nil {
			return err
		}
		if s.pause > 0 && i%s.burst == 0 {
			time.Sleep(s.pause)
		}
	}
	return nil
}

// sighting is one answer's version, for the order of what one reader saw.
type sighting struct {
	level   ledger.Commitment
	version ledger.Version // of the newest record
	slot    ledger.Slot
}

// witnessReader asks one engine, as one connection does.
type witnessReader struct {
	e       *Engine
	s       *witnessStream
	r       *rand.Rand
	seen    []sighting
	answers int
	refused int // answers that were unavailable
}

var witnessKeys = func() (keys []ledger.Pubkey) {
	for i := range witnesses {
		keys = append(keys, key(500_000+i))
	}
	for i := range witnessPurses {
		keys = append(keys, key(600_000+i))
	}
	return keys
}()

// ask asks one question and checks that the whole answer is of one block.
func (w *witnessReader) ask(head *ledger.Head) error {
	q := ledger.Query{Commitment: levels[w.r.IntN(3)], Head: head}
	if head == nil && w.r.IntN(8) == 0 && len(w.seen) > 0 {
		q.MinSlot, q.Wait = w.seen[len(w.seen)-1].slot+ledger.Slot(w.r.IntN(3)), time.Millisecond
	}
	view, err := w.question(q)
	if errors.Is(err, ledger.ErrUnavailable) {
		w.refused++
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s, slot %d: %w", q.Commitment, view.Tip().Slot, err)
	}
	if view.Tip().Slot < q.MinSlot {
		return fmt.Errorf("%s: answered at slot %d, asked for %d or later", q.Commitment, view.Tip().Slot, q.MinSlot)
	}
	w.answers++
	if head == nil {
		w.seen = append(w.seen, sighting{q.Commitment, view.Head.Tip(ledger.Processed).Version, view.Tip().Slot})
	}
	return nil
}

func (w *witnessReader) question(q ledger.Query) (ledger.View, error) {
	switch w.r.IntN(6) {
	case 0, 1:
		all, v, err := w.e.Accounts(q, witnessKeys)
		if err != nil {
			return v, err
		}
		var sum ledger.Lamports
		for i := range witnessPurses {
			sum += all[witnesses+i].Lamports
		}
		if sum != witnessPurses*witnessPurse {
			return v, fmt.Errorf("the purses hold %d, want %d", sum, witnessPurses*witnessPurse)
		}
		return v, w.stamped(v, all[:witnesses], witnesses)
	case 2:
		all, _, v, err := w.e.Program(q, witnessProgram, ledger.Opt[ledger.Pubkey]{}, 1000)
		if err != nil {
			return v, err
		}
		return v, w.stamped(v, all, witnesses)
	case 3:
		tokens, _, v, err := w.e.Tokens(q, witnessWallet, ledger.Opt[ledger.Pubkey]{}, 1000)
		if err != nil {
			return v, err
		}
		var all []ledger.Account
		for _, t := range tokens {
			all = append(all, ledger.Account{Pubkey: t.Account.Pubkey, Lamports: ledger.Lamports(t.Account.Token.Amount)})
		}
		return v, w.stamped(v, all, witnessHoldings)
	case 4:
		return w.recent(q)
	}
	b, v, err := w.e.LatestBlock(q)
	if err == nil && b.Block.Blockhash != v.Tip().Hash {
		err = fmt.Errorf("the latest block is at slot %d", b.Block.Slot)
	}
	return v, err
}

// stamped checks that all accounts carry the stamp of the block the answer stands at.
func (w *witnessReader) stamped(v ledger.View, all []ledger.Account, want int) error {
	stamp := w.s.byHash[v.Tip().Hash].stamp
	if len(all) != want {
		return fmt.Errorf("%d accounts, want %d", len(all), want)
	}
	for i := range all {
		if all[i].Lamports != ledger.Lamports(stamp) {
			return fmt.Errorf("%s carries the stamp %d, want %d", all[i].Pubkey, all[i].Lamports, stamp)
		}
	}
	return nil
}

// recent checks that the newest transactions are those of the tip's block and its ancestors.
func (w *witnessReader) recent(q ledger.Query) (ledger.View, error) {
	got, _, v, err := w.e.Recent(q, ledger.RecentRange{Limit: 4 * witnessPerBlock})
	if err != nil {
		return v, err
	}
	b := w.s.byHash[v.Tip().Hash]
	for i, t := range got {
		if i > 0 && i%witnessPerBlock == 0 {
			b = b.parent
		}
		if want := &b.Transactions[witnessPerBlock-1-i%witnessPerBlock]; !sameTransaction(t, want) {
			return v, fmt.Errorf("transaction %d is of slot %d, want of slot %d", i, t.Slot, want.Slot)
		}
	}
	return v, nil
}

// inOrder checks that what the reader saw never went back but over a rollback.
func (w *witnessReader) inOrder(rollbacks []ledger.Version) error {
	last := make(map[ledger.Commitment]sighting)
	var newest ledger.Version
	for _, now := range w.seen {
		before := last[now.level]
		if now.version < newest {
			return fmt.Errorf("saw version %d after %d", now.version, newest)
		}
		over := slices.ContainsFunc(rollbacks, func(v ledger.Version) bool { return v > before.version && v <= now.version })
		if now.slot < before.slot && (!over || now.level == ledger.Finalized) {
			return fmt.Errorf("saw %s slot %d after slot %d without a rollback", now.level, now.slot, before.slot)
		}
		newest, last[now.level] = now.version, now
	}
	return nil
}

// TestNoAnswerMixesTwoBlocks runs a source flat out, with forks, while readers ask everything at
// every level.
func TestNoAnswerMixesTwoBlocks(t *testing.T) {
	stream := newWitnessStream(seeded(t, 1).Uint64(), rounds(t, 1500))
	watchWitnesses(t, stream, &flatOut{stream: stream}, func(w *witnessReader) error {
		runtime.Gosched()
		return w.ask(nil)
	})
}

// TestNoAnswerMixesTwoBlocksWhileFolding paces the same so that versions are folded all the
// time, and readers also ask at heads that are almost too old to be asked at.
func TestNoAnswerMixesTwoBlocksWhileFolding(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		stream := newWitnessStream(seeded(t, 2).Uint64(), rounds(t, 1200))
		source := &flatOut{stream: stream, burst: 5, pause: 25 * time.Millisecond}
		watchWitnesses(t, stream, source, func(w *witnessReader) error {
			head := w.e.Head()
			for range 4 {
				if err := w.ask(nil); err != nil {
					return err
				}
			}
			time.Sleep(time.Duration(w.r.IntN(int(20 * time.Millisecond))))
			if w.r.IntN(20) > 0 {
				return nil
			}
			time.Sleep(time.Duration(w.r.IntN(int(queryDeadline))))
			refused := w.refused
			if err := w.ask(head); err != nil {
				return fmt.Errorf("at an old head: %w", err)
			}
			if w.refused != refused {
				return errors.New("a head was folded away within the time a query may take")
			}
			return nil
		})
	})
}

// watchWitnesses follows the source to its end while readers do what turn says.
func watchWitnesses(t *testing.T, stream *witnessStream, source Source, turn func(*witnessReader) error) {
	t.Helper()
	var mu sync.Mutex
	var rollbacks []ledger.Version
	e := New(Config{
		Source: source, Shards: 4, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		OnPublish: func(p *ledger.Publication) {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range p.Records {
				if r.Kind == ledger.RollbackRecord {
					rollbacks = append(rollbacks, r.Version)
				}
			}
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for e.Head() == nil {
		<-e.nextPublication()
	}
	lastStatus := stream.events[len(stream.events)-1].(*ledger.SlotStatus)
	done := make(chan struct{})
	var readers sync.WaitGroup
	all := make([]*witnessReader, 6)
	for i := range all {
		w := &witnessReader{e: e, s: stream, r: rand.New(rand.NewPCG(uint64(i), 3))}
		all[i] = w
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := turn(w); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for {
		next := e.nextPublication()
		if e.Head().Tip(ledger.Finalized).Slot >= lastStatus.Slot {
			break
		}
		<-next
	}
	close(done)
	readers.Wait()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	answers, refused := 0, 0
	for _, w := range all {
		answers, refused = answers+w.answers, refused+w.refused
		if err := w.inOrder(rollbacks); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d blocks, %d rollbacks, %d answers, %d unavailable", len(stream.byHash), len(rollbacks), answers, refused)
	if answers == 0 || len(rollbacks) == 0 {
		t.Error("nothing was tested")
	}
}
