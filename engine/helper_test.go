package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var seeded, sample, key, must = ledgertest.Seeded, ledgertest.Sample, ledgertest.Key, ledgertest.Must

// script is a source that shows what a test feeds it.
type script struct {
	info ledger.SourceInfo
	feed chan ledger.Event
	err  error // what Run returns once feed is closed

	trouble func() string
	ended   bool // Run returned
}

func newScript(info ledger.SourceInfo) *script {
	return &script{info: info, feed: make(chan ledger.Event), trouble: func() string { return "" }}
}

func (s *script) Info() ledger.SourceInfo { return s.info }
func (s *script) Peers() int              { return 3 }
func (s *script) Trouble() string         { return s.trouble() }

func (s *script) Run(ctx context.Context, _ *ledger.ResumePoint, emit ledger.Emit) error {
	defer func() { s.ended = true }()
	for {
		select {
		case e, ok := <-s.feed:
			if !ok {
				return s.err
			}
			if err := emit(ctx, e); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// subject is an engine that runs inside a bubble and remembers what it published.
type subject struct {
	*Engine
	t         *testing.T
	source    *script
	published []*ledger.Publication // read it only after settle
	ended     chan struct{}
	err       error // of Run, after ended
	cancel    context.CancelFunc
	awaited   bool            // the test looked at err
	disk      *vfstest.Faulty // of diskTest: it can be stalled
}

// startNode runs an engine over a script until the test stops it or ends.
func startNode(t *testing.T, info ledger.SourceInfo, c Config) *subject {
	t.Helper()
	return startSource(t, newScript(info), c)
}

// startSource runs an engine over any source, nil for none, until the test stops it.
func startSource(t *testing.T, source ledger.Source, c Config) *subject {
	n := newSubject(t, source, &c)
	n.run(c, func(*ledger.Publication) bool { return true })
	return n
}

// newSubject returns an engine that does not run yet, over a source, nil for none. Without a directory it gets one on a disk of its own.
func newSubject(t *testing.T, source ledger.Source, c *Config) *subject {
	if c.Source = source; c.Dir == nil {
		*c = onDisk(t, vfstest.NewMemory(), *c)
	}
	n := &subject{t: t, ended: make(chan struct{})}
	n.source, _ = source.(*script)
	return n
}

// run runs an engine until the test stops it or ends, which must be without an error. It remembers of what it is told
// what is to be kept.
func (n *subject) run(c Config, keep func(*ledger.Publication) bool) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.NewTextHandler(io.Discard, nil)))
	c.OnPublish = func(p *ledger.Publication) {
		if keep(p) {
			n.published = append(n.published, p)
		}
	}
	c.IndexMints = true // the lists that every node has do not differ by it
	n.Engine = New(c)
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(n.t.Context())
	go func() {
		defer close(n.ended)
		n.err = n.Engine.Run(ctx)
	}()
	n.t.Cleanup(func() {
		if !n.awaited {
			n.mustStop()
		}
	})
}

// send shows events and waits until nothing moves any more.
func (n *subject) send(events ...ledger.Event) {
	n.t.Helper()
	if !n.try(events...) {
		n.t.Fatalf("the engine ended before it saw everything: %v", n.err)
	}
}

// try is send for events that may end the engine. It reports whether all were taken.
func (n *subject) try(events ...ledger.Event) bool {
	taken := 0
	for _, e := range events {
		select {
		case n.source.feed <- e:
			taken++
		case <-n.ended:
		}
	}
	synctest.Wait()
	return taken == len(events)
}

// endInput ends the source's input and waits until that is settled.
func (n *subject) endInput() {
	close(n.source.feed)
	synctest.Wait()
}

// stop ends the engine and returns what Run returned.
func (n *subject) stop() error {
	n.cancel()
	return n.end()
}

// end waits until the engine has ended by itself and returns what Run returned. In a bubble an engine that goes on does so for ever.
func (n *subject) end() error {
	n.t.Helper()
	n.awaited = true
	select {
	case <-n.ended:
		return n.err
	case <-time.After(time.Hour):
		n.t.Error("the engine goes on")
		n.cancel()
		<-n.ended
		return errors.New("the engine went on")
	}
}

// mustStop fails the test unless the engine ends cleanly.
func (n *subject) mustStop() {
	n.t.Helper()
	ledgertest.ErrorIs(n.t, n.stop(), nil, "Run")
}

// records returns everything published so far, in order, once nothing moves.
func (n *subject) records() []*ledger.Record {
	synctest.Wait()
	var all []*ledger.Record
	for _, p := range n.published {
		all = append(all, p.Records...)
	}
	return all
}

// hasEnded reports whether Run returned.
func (n *subject) hasEnded() bool {
	select {
	case <-n.ended:
		n.awaited = true
		return true
	default:
		return false
	}
}

// hash returns the n-th block hash.
func hash(n int) ledger.Hash { return ledger.Hash(key(1_000_000 + n)) }

// signature returns the n-th signature.
func signature(n int) (s ledger.Signature) {
	a, b := key(2_000_000+n), key(3_000_000+n)
	copy(s[:32], a[:])
	copy(s[32:], b[:])
	return s
}

// live is a source that follows a node and shows everything, with its statuses.
func live() ledger.SourceInfo {
	return ledger.SourceInfo{Name: "test", Identity: "test", Live: true, Complete: true}
}

// finite is a source that ends and says nothing of finality.
func finite() ledger.SourceInfo {
	return ledger.SourceInfo{Name: "test", Identity: "test", FinalityByDepth: true}
}

// child returns a block at slot on top of parent. Its hash tells slot and branch.
func child(parent *ledger.Block, slot ledger.Slot, branch int, writes ...ledger.AccountWrite) *ledger.Block {
	return &ledger.Block{
		Slot: slot, ParentSlot: parent.Slot, Blockhash: hash(int(slot)*100 + branch),
		PreviousBlockhash: ledger.Some(parent.Blockhash), Time: ledger.Some(int64(1_700_000_000 + slot)),
		Accounts: writes,
	}
}

// rootBlock returns a first block at slot.
func rootBlock(slot ledger.Slot, writes ...ledger.AccountWrite) *ledger.Block {
	b := child(&ledger.Block{Blockhash: hash(int(slot-1) * 100)}, slot, 0, writes...)
	b.ParentSlot = slot - 1
	return b
}

// lamports returns a whole account of the system program.
func lamports(k ledger.Pubkey, amount ledger.Lamports) ledger.AccountWrite {
	return owned(k, amount, ledger.SystemProgram)
}

// owned returns a whole account of a program, without token or mint facts.
func owned(k ledger.Pubkey, amount ledger.Lamports, owner ledger.Pubkey) ledger.AccountWrite {
	return ledger.AccountWrite{Pubkey: k, Lamports: amount, Owner: owner, Known: ledger.FieldsAll}
}

// holding returns a whole token account.
func holding(k, mint, wallet ledger.Pubkey, amount uint64) ledger.AccountWrite {
	w := owned(k, 2_039_280, ledger.TokenProgram)
	w.Token = &ledger.TokenAccount{
		Mint: mint, Owner: wallet, Amount: amount,
		Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized}),
	}
	return w
}

// with gives b transactions with these signatures.
func with(b *ledger.Block, signatures ...ledger.Signature) *ledger.Block {
	for _, s := range signatures {
		b.AddTransaction(ledger.Transaction{Signature: s, Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true)})
	}
	b.TransactionCount = uint64(len(b.Transactions))
	return b
}

// status says something of a block, by its hash.
func status(b *ledger.Block, s ledger.Status) *ledger.SlotStatus {
	return &ledger.SlotStatus{Slot: b.Slot, Status: s, Blockhash: ledger.Some(b.Blockhash)}
}

// absence returns why something is not held; ok is false for any other error.
func absence(err error) (why ledger.NotFoundError, ok bool) {
	var missing *ledger.NotFoundError
	if !errors.As(err, &missing) {
		return why, false
	}
	return *missing, true
}

func at(level ledger.Commitment) ledger.Query { return ledger.Query{Commitment: level} }

var levels = []ledger.Commitment{ledger.Processed, ledger.Confirmed, ledger.Finalized}
