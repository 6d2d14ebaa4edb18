package geyser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protowire"

	"ledgerd/engine/ledger"
	"ledgerd/engine/sequencer"
	"ledgerd/engine/source/yellowstone"
	"ledgerd/shard/txstore"
	"ledgerd/snapshot"
)

// part is a message under construction.
type part []byte

func (p part) number(field protowire.Number, v uint64) part { return appendNumber(p, field, v) }
func (p part) bytes(field protowire.Number, b []byte) part  { return appendPart(p, field, b) }

func hashOf(slot ledger.Slot, fork byte) ledger.Hash {
	return ledger.Hash{byte(slot >> 8), byte(slot), fork}
}
func keyOf(n byte) ledger.Pubkey { return ledger.Pubkey{n, 0xaa} }

func slotUpdate(slot ledger.Slot, status yellowstone.SlotStatus) part {
	return part(nil).bytes(3, part(nil).number(1, uint64(slot)).number(3, uint64(status)))
}

func accountUpdate(slot ledger.Slot, key, owner ledger.Pubkey, lamports, version uint64, data []byte) part {
	info := part(nil).bytes(1, key[:]).number(2, lamports).bytes(3, owner[:]).number(7, version)
	if data != nil {
		info = info.bytes(6, data)
	}
	return part(nil).bytes(2, part(nil).bytes(1, info).number(2, uint64(slot)))
}

func transactionUpdate(slot ledger.Slot, index uint64, key ledger.Pubkey) part {
	signature := make([]byte, 64)
	signature[0], signature[1], signature[2] = byte(slot), byte(index), 1
	body := part(nil).bytes(1, signature).bytes(2, part(nil).bytes(2, key[:]))
	info := part(nil).bytes(1, signature).bytes(3, body).bytes(4, part(nil).number(2, 5000)).number(5, index)
	return part(nil).bytes(4, part(nil).bytes(1, info).number(2, uint64(slot)))
}

// block is a block as the fake node tells of it: two writes and a transaction.
type block struct {
	slot, parent     ledger.Slot
	fork, parentFork byte
}

func (b block) head() part {
	hash, parent := hashOf(b.slot, b.fork), hashOf(b.parent, b.parentFork)
	meta := part(nil).number(1, uint64(b.slot)).bytes(2, hash.AppendBase58(nil)).number(6, uint64(b.parent)).
		bytes(7, parent.AppendBase58(nil)).number(8, 1)
	return part(nil).bytes(7, meta)
}

// messages tell all of the block up to its being processed.
func (b block) messages() []part {
	return []part{
		slotUpdate(b.slot, yellowstone.CreatedBank),
		accountUpdate(b.slot, keyOf(1), keyOf(9), uint64(b.slot), uint64(b.slot)*10, nil),
		accountUpdate(b.slot, keyOf(byte(b.slot)), keyOf(9), uint64(b.slot), uint64(b.slot)*10+1, nil),
		transactionUpdate(b.slot, 0, keyOf(1)),
		b.head(),
		slotUpdate(b.slot, yellowstone.Processed),
	}
}

// filled is the block as a Filler tells of it.
func (b block) filled() *ledger.Block {
	return &ledger.Block{
		Slot: b.slot, ParentSlot: b.parent, Blockhash: hashOf(b.slot, b.fork),
		PreviousBlockhash: ledger.Some(hashOf(b.parent, b.parentFork)), Status: ledger.Confirmed,
	}
}

// straight returns the messages of blocks from one slot to another, each confirmed by the next one's
// time and finalized three slots later.
func straight(from, to ledger.Slot) (all []part) {
	for slot := from; slot <= to; slot++ {
		all = append(all, block{slot: slot, parent: slot - 1}.messages()...)
		all = append(all, slotUpdate(slot-1, yellowstone.Confirmed), slotUpdate(slot-4, yellowstone.Finalized))
	}
	return all
}

// call is one Subscribe call at the fake node.
type call struct {
	number  int    // from 0
	request []byte // the first
	token   []string
	stream  grpc.ServerStream
}

func (c *call) send(messages ...part) error {
	for _, m := range messages {
		if err := c.stream.SendMsg([]byte(m)); err != nil {
			return err
		}
	}
	return nil
}

// hang waits until the client goes.
func (c *call) hang() error {
	<-c.stream.Context().Done()
	return c.stream.Context().Err()
}

// from returns the slot that the client wants to begin with.
func (c *call) from() ledger.Opt[ledger.Slot] {
	for b := c.request; len(b) > 0; {
		field, kind, n := protowire.ConsumeTag(b)
		b = b[n:]
		if field == requestFromSlot {
			v, _ := protowire.ConsumeVarint(b)
			return ledger.Some(ledger.Slot(v))
		}
		b = b[protowire.ConsumeFieldValue(field, kind, b):]
	}
	return ledger.Opt[ledger.Slot]{}
}

// serverCodec takes requests and sends updates as they are.
type serverCodec struct{ codec }

func (serverCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// fakeNode serves Subscribe calls by a script.
type fakeNode struct {
	listener *bufconn.Listener
	server   *grpc.Server

	mu    sync.Mutex
	calls []ledger.Opt[ledger.Slot] // where they wanted to begin
}

func newFakeNode(t *testing.T, script func(c *call) error, options ...grpc.ServerOption) *fakeNode {
	n := &fakeNode{listener: bufconn.Listen(1 << 20)}
	options = append(options, grpc.WaitForHandlers(true), grpc.ForceServerCodecV2(serverCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(stream); method != subscribeMethod {
			return fmt.Errorf("no method %s", method)
		}
		c := &call{stream: stream}
		if md, ok := metadata.FromIncomingContext(stream.Context()); ok {
			c.token = md.Get("x-token")
		}
		if err := stream.RecvMsg(&c.request); err != nil {
			return err
		}
		n.mu.Lock()
		c.number = len(n.calls)
		n.calls = append(n.calls, c.from())
		n.mu.Unlock()
		return script(c)
	}))
	n.server = grpc.NewServer(options...)
	var serving sync.WaitGroup
	serving.Go(func() { _ = n.server.Serve(n.listener) })
	t.Cleanup(func() {
		n.server.Stop()
		serving.Wait()
	})
	return n
}

func (n *fakeNode) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return n.listener.DialContext(ctx)
}

func (n *fakeNode) began() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var begins []string
	for _, from := range n.calls {
		if !from.Known {
			begins = append(begins, "live")
			continue
		}
		begins = append(begins, fmt.Sprint(from.Value))
	}
	return begins
}

// errEnough ends a run that emitted what the test waits for.
var errEnough = errors.New("enough")

// collector is a sequencer without shards behind a source. It keeps its records as lines, and ends the run with the
// one that it waits for.
type collector struct {
	mu    sync.Mutex
	seq   *sequencer.Sequencer
	lines []string
	until string // "" for never
}

// resume makes the sequencer, which holds the block to resume from.
func (c *collector) resume(from *ledger.ResumePoint, info ledger.SourceInfo) {
	c.seq = sequencer.New(sequencer.Config{
		Stored: txstore.New(), Retention: sequencer.Retention{Slots: 9000, Bytes: 1 << 30}, Info: info, Logger: quiet(),
	})
	if from != nil {
		root := &ledger.Block{Slot: from.Slot, Blockhash: from.Blockhash}
		meta := &snapshot.Meta{Version: 1, Slot: root.Slot, Blockhash: root.Blockhash, Block: root, BaseOnly: true}
		c.seq.ResumeAt(meta, nil, ledger.Opt[ledger.Slot]{})
		c.seq.ResumeSource()
	}
}

// stopAt sets the line that ends the run.
func (c *collector) stopAt(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = line
}

func (c *collector) emit(_ context.Context, e ledger.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.seq.Handle(e)
	if err != nil {
		return err
	}
	batch, err := c.seq.Seal()
	if err != nil {
		return err
	}
	for _, r := range batch.Records {
		var line string
		switch r.Kind {
		case ledger.BlockRecord:
			line = fmt.Sprintf("block %d", r.Slot)
			if r.Hash[2] != 0 {
				line += fmt.Sprintf(".%d", r.Hash[2])
			}
			if len(r.Block.Accounts) == 0 {
				line += " filled"
			}
		case ledger.StatusRecord:
			line = fmt.Sprintf("%s %d", r.Status, r.Slot)
		case ledger.RollbackRecord:
			line = fmt.Sprintf("back to %d", r.Slot)
		case ledger.BaseRecord:
			line = fmt.Sprintf("base %d of %d", r.Slot, len(r.Base.Accounts))
		}
		c.lines = append(c.lines, line)
		if line == c.until {
			return errEnough
		}
	}
	return nil
}

// of returns the lines of one kind without it, joined.
func (c *collector) of(kind string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []string
	for _, line := range c.lines {
		if rest, ok := strings.CutPrefix(line, kind+" "); ok {
			found = append(found, rest)
		}
	}
	return strings.Join(found, " ")
}

// first returns the first lines, for a message.
func (c *collector) first(n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[:min(n, len(c.lines))]
}

// fillerFunc is a Filler that notes what it is asked for.
type fillerFunc struct {
	mu    sync.Mutex
	asked []string
	fill  func(after, upTo ledger.Slot, emit func(block) error) error
}

func (f *fillerFunc) Fill(ctx context.Context, after ledger.Slot, hash ledger.Hash, upTo ledger.Slot, emit ledger.Emit) error {
	f.mu.Lock()
	f.asked = append(f.asked, fmt.Sprintf("%d.%d-%d", after, hash[1], upTo))
	f.mu.Unlock()
	return f.fill(after, upTo, func(b block) error { return emit(ctx, b.filled()) })
}

func (f *fillerFunc) questions() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// fillStraight fills with the blocks of straight.
func fillStraight(after, upTo ledger.Slot, emit func(block) error) error {
	for slot := after + 1; slot <= upTo; slot++ {
		if err := emit(block{slot: slot, parent: slot - 1}); err != nil {
			return err
		}
	}
	return nil
}

// at is a point to resume from.
func at(slot ledger.Slot) *ledger.ResumePoint {
	return &ledger.ResumePoint{Slot: slot, Blockhash: hashOf(slot, 0)}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// configFor follows a fake node.
func configFor(n *fakeNode) Config {
	return Config{Address: "node.test:10000", Dial: n.dial, Logger: quiet(), Random: func(int64) int64 { return 0 }}
}
