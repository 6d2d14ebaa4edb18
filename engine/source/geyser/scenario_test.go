package geyser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/nodetest"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

var must = ledgertest.Must

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one Subscribe call at a fake node.
type call struct {
	number  int               // from 0
	request *nodetest.Request // the first
	token   []string
	node    string // whose address was dialled
	stream  grpc.ServerStream
}

func (c *call) send(messages ...part) error {
	for _, m := range messages {
		if c.request.Excludes(m) {
			continue
		}
		if err := c.stream.SendMsg((*[]byte)(&m)); err != nil {
			return err
		}
	}
	return nil
}

// from returns the slot that the client wants to begin with.
func (c *call) from() ledger.Opt[ledger.Slot] { return c.request.FromSlot }

// again waits for the client to ask for a replay on the same call, and returns from where.
func (c *call) again() (from ledger.Slot, err error) {
	for {
		if r, err := nodetest.Receive(c.stream); err != nil || r.FromSlot.Known {
			return r.FromSlot.Value, err
		}
	}
}

// script is what a node does in a call.
type script func(c *call) error

// shows sends messages and ends the call.
func shows(all ...part) script { return func(c *call) error { return c.send(all...) } }

// stays sends messages and waits until the client goes.
func stays(all ...part) script {
	return func(c *call) error {
		if err := c.send(all...); err != nil {
			return err
		}
		<-c.stream.Context().Done()
		return c.stream.Context().Err()
	}
}

// calls follows a script for each call, and the last one for all after it.
func calls(each ...script) script {
	return func(c *call) error { return each[min(c.number, len(each)-1)](c) }
}

// errEnough ends a run that emitted what the test waits for.
var errEnough = errors.New("enough")

// fill is what a Filler does.
type fill func(after, upTo ledger.Slot, emit func(block) error) error

// fillStraight fills with the blocks of straight.
func fillStraight(after, upTo ledger.Slot, emit func(block) error) error {
	for slot := after + 1; slot <= upTo; slot++ {
		if err := emit(block{slot: slot, parent: slot - 1}); err != nil {
			return err
		}
	}
	return nil
}

// scenario is a source that follows a fake node, in simulated time. It feeds a sequencer without shards, of which the
// records are kept as lines.
type scenario struct {
	script  script
	fill    fill            // nil: there is no Filler
	config  func(c *Config) // sets more; may be nil
	options []grpc.ServerOption
	emitted func(e ledger.Event) // is called before the sequencer; may be nil
	fresh   bool                 // it does not begin after block 100
	until   string               // the line that ends it; "": most does; a script may set it under mu
	most    time.Duration        // 0: a minute

	source *Source
	seq    *sequencer.Sequencer

	mu     sync.Mutex
	lines  []string
	begins []string // the slots that calls wanted to begin at, or "live"; "-whole" with whole data
	asked  []string // what the Filler was asked for
}

// run follows the node until the scenario ends.
func (s *scenario) run(t *testing.T) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 20)
		s.serve(t, listener)
		c := Config{
			Addresses: []string{"node.test:10000"}, Logger: quiet(), Random: func(int64) int64 { return 0 },
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
		}
		if s.fill != nil {
			c.Filler = s
		}
		if s.config != nil {
			s.config(&c)
		}
		s.source = New(c)
		from := s.resume()
		ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(s.most, time.Minute))
		defer cancel()
		want := errEnough
		if s.until == "" {
			want = context.DeadlineExceeded
		}
		if err := s.source.Run(ctx, from, s.emit); !errors.Is(err, want) {
			t.Fatalf("Run: %v after %q, begun at %q, %+v", err, s.lines[:min(60, len(s.lines))], s.begins, s.source.Upstream())
		}
	})
}

// serve has the node answer calls until the test ends.
func (s *scenario) serve(t *testing.T, listener net.Listener) {
	server := nodetest.NewStreamServer(func(stream grpc.ServerStream) (err error) {
		c := &call{stream: stream}
		if md, ok := metadata.FromIncomingContext(stream.Context()); ok {
			c.token, c.node = md.Get("x-token"), strings.Join(md.Get(":authority"), "")
		}
		if c.request, err = nodetest.Receive(stream); err != nil {
			return err
		}
		s.mu.Lock()
		c.number = len(s.begins)
		begin := "live"
		if from := c.from(); from.Known {
			begin = fmt.Sprint(from.Value)
		}
		if len(c.request.Slices) == 0 {
			begin += "-whole"
		}
		s.begins = append(s.begins, begin)
		s.mu.Unlock()
		return s.script(c)
	}, s.options...)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
}

// resume makes the sequencer, and returns where the source begins.
func (s *scenario) resume() *ledger.ResumePoint {
	s.seq = sequencer.New(sequencer.Config{
		Stored: txstore.New(), Retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 30}, Info: s.source.Info(), Logger: quiet(),
	})
	if s.fresh {
		return nil
	}
	root := &ledger.Block{Slot: 100, Blockhash: hashOf(100, 0)}
	meta := &snapshot.Meta{Version: 1, Slot: root.Slot, Blockhash: root.Blockhash, Block: root, BaseOnly: true}
	s.seq.ResumeAt(meta, 0, nil, ledger.Opt[ledger.Slot]{})
	s.seq.ResumeSource()
	return &ledger.ResumePoint{Slot: root.Slot, Blockhash: root.Blockhash}
}

func (s *scenario) emit(_ context.Context, e ledger.Event) error {
	if s.emitted != nil {
		s.emitted(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.seq.Handle(e); err != nil {
		return err
	}
	batch, err := s.seq.Seal()
	if err != nil {
		return err
	}
	for _, r := range batch.Records {
		line := lineOf(r)
		s.lines = append(s.lines, line)
		if line == s.until {
			return errEnough
		}
	}
	return nil
}

func lineOf(r *ledger.Record) (line string) {
	switch r.Kind {
	case ledger.BlockRecord:
		line = fmt.Sprintf("block %d", r.Slot)
		if r.Hash[2] != 0 {
			line += fmt.Sprintf(".%d", r.Hash[2])
		}
		switch writes := len(r.Block.Accounts); {
		case r.Block.Status == ledger.Confirmed: // no block of the stream is, as it comes
			line += " filled"
		case writes < 2 && keyOf(byte(r.Slot)) != keyOf(1):
			line += " in part"
		}
	case ledger.StatusRecord:
		line = fmt.Sprintf("%s %d", r.Status, r.Slot)
	case ledger.RollbackRecord:
		line = fmt.Sprintf("back to %d", r.Slot)
	case ledger.BaseRecord:
		line = fmt.Sprintf("base %d of %d", r.Slot, len(r.Base.Accounts))
	}
	return line
}

// of returns the lines of one kind without it, joined.
func (s *scenario) of(kind string) string {
	var found []string
	for _, line := range s.lines {
		if rest, ok := strings.CutPrefix(line, kind+" "); ok {
			found = append(found, rest)
		}
	}
	return strings.Join(found, " ")
}

// Fill notes what the Filler is asked for, and fills that.
func (s *scenario) Fill(ctx context.Context, after ledger.Slot, hash ledger.Hash, upTo ledger.Slot, emit ledger.Emit) error {
	s.asked = append(s.asked, fmt.Sprintf("%d.%d-%d", after, hash[1], upTo))
	return s.fill(after, upTo, func(b block) error {
		return emit(ctx, &ledger.Block{
			Slot: b.slot, ParentSlot: b.parent, Blockhash: hashOf(b.slot, b.fork),
			PreviousBlockhash: ledger.Some(hashOf(b.parent, b.parentFork)), Status: ledger.Confirmed,
		})
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
