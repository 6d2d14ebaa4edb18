package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/source/nodetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode answers JSON-RPC from a scripted ledger, over connections in memory.
type fakeNode struct {
	mu        sync.Mutex
	blocks    map[ledger.Slot]*fakeBlock // present ones, in the order of their parents
	confirmed ledger.Slot
	finalized ledger.Slot
	first     ledger.Slot // blocks below are not kept
	unkept    int         // code of the error that says so; 0: cleaned up
	context   ledger.Slot // of getMultipleAccounts; 0: confirmed
	accounts  map[ledger.Pubkey]fakeAccount
	calls     map[string]int
	asked     map[ledger.Pubkey]int // how often about an account
	fault     answer                // comes before the node's own, unless nil; it is called under the lock

	ended <-chan struct{} // closed when the test ends
}

// fakeBlock is a block as the node has it.
type fakeBlock struct {
	slot, parent   ledger.Slot
	hash, previous ledger.Hash
	fields         string // more fields of its JSON; "" is that it has no transactions
}

type fakeAccount struct {
	lamports uint64
	owner    ledger.Pubkey
	data     []byte
}

// play runs a test with a fake clock, a fake node and a source that follows it.
func play(t *testing.T, c Config, script func(t *testing.T, n *fakeNode, s *Source)) {
	t.Helper()
	bubbletest.Test(t, func(t *testing.T) {
		n := &fakeNode{
			blocks: map[ledger.Slot]*fakeBlock{}, accounts: map[ledger.Pubkey]fakeAccount{}, calls: map[string]int{}, asked: map[ledger.Pubkey]int{},
			ended: t.Context().Done(),
		}
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{Handler: n, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(listener) })
		t.Cleanup(func() {
			server.Close()
			serving.Wait()
			time.Sleep(time.Hour) // longer than any answer takes
		})
		if c.Dial == nil {
			c.Dial = listener.dial
		}
		if c.Random == nil {
			c.Random = func(int64) int64 { return 0 }
		}
		c.URL, c.Logger = &nodeURL, cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
		s := New(c)
		defer s.CloseIdle()
		script(t, n, s)
	})
}

// pipes is a listener for connections in memory, which may be dialed until it is closed. Those of net.Pipe end no read by a deadline that
// was taken back, as those of bufconn may: net/http sets one to interrupt a read, and then closes a connection that nobody closed.
type pipes struct {
	dialed chan net.Conn
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.dialed <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return new(net.UnixAddr) }

var nodeURL = url.URL{
	Scheme: "http", User: url.UserPassword("user", "secret"), Host: "node.example:8899",
	Path: "/path-key", RawQuery: "api-key=secret",
}

// longest is Config.Random for the longest pauses.
func longest(n int64) int64 { return n - 1 }

// locked changes the node; unlocked lets an answer take time.
func (n *fakeNode) locked(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *fakeNode) unlocked(f func()) {
	n.mu.Unlock()
	defer n.mu.Lock()
	f()
}

func hashOf(name string) (h ledger.Hash) {
	copy(h[:], name)
	h[31] = 1
	return h
}

func keyOf(i int) (k ledger.Pubkey) {
	k[0], k[1], k[31] = byte(i), byte(i>>8), 7
	return k
}

// slots returns the slots from first to last.
func slots(first, last ledger.Slot) (list []ledger.Slot) {
	for slot := first; slot <= last; slot++ {
		list = append(list, slot)
	}
	return list
}

// add puts blocks on top of each other, the first on parent. Their hashes are made of their slots.
func (n *fakeNode) add(parent ledger.Slot, slots ...ledger.Slot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, slot := range slots {
		b := &fakeBlock{slot: slot, parent: parent, hash: hashOf(fmt.Sprint(slot)), previous: hashOf(fmt.Sprint(parent))}
		if p := n.blocks[parent]; p != nil {
			b.previous = p.hash
		}
		n.blocks[slot] = b
		parent, n.confirmed = slot, max(n.confirmed, slot)
	}
}

// goOn adds a block each 400 ms until the node has that of a slot, or the test ends.
func (n *fakeNode) goOn(from, last ledger.Slot) {
	for slot := from + 1; slot <= last; slot++ {
		select {
		case <-time.After(400 * time.Millisecond):
			n.add(slot-1, slot)
		case <-n.ended:
			return
		}
	}
}

// pay has a block touch accounts, which have so many lamports after it.
func (n *fakeNode) pay(slot ledger.Slot, lamports uint64, keys ...ledger.Pubkey) {
	var names []string
	for _, k := range keys {
		names = append(names, fmt.Sprintf("%q", k.String()))
	}
	balances := slices.Repeat([]string{fmt.Sprint(lamports)}, len(keys))
	n.locked(func() {
		n.blocks[slot].fields = fmt.Sprintf(`,"transactions":[{"transaction":{"signatures":[%q],"message":{"accountKeys":[%s]}},`+
			`"meta":{"err":null,"fee":5000,"postBalances":[%s]}}]`,
			ledger.Signature{byte(slot)}.String(), strings.Join(names, ","), strings.Join(balances, ","))
	})
}

// hold has the node know an account.
func (n *fakeNode) hold(key ledger.Pubkey, lamports uint64, owner ledger.Pubkey, data []byte) {
	n.locked(func() { n.accounts[key] = fakeAccount{lamports, owner, data} })
}

func (b *fakeBlock) json() string {
	return fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":%d,"blockTime":1,"blockHeight":%d%s}`,
		b.hash.String(), b.previous.String(), b.parent, b.slot, cmp.Or(b.fields, `,"transactions":[]`))
}

// totalLocked returns how many calls came.
func (n *fakeNode) totalLocked() (total int) {
	for _, calls := range n.calls {
		total += calls
	}
	return total
}

// ServeHTTP answers a call.
func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call, err := nodetest.ReadCall(w, r)
	if err != nil {
		http.Error(w, "bad", http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[call.Method]++
	if n.fault != nil && n.fault(&fakeCall{w, call, n}) {
		return
	}
	_, _ = w.Write(call.Answer(n))
}

// Newest and the others implement nodetest.Chain. They are called under the lock.
func (n *fakeNode) Newest(level ledger.Commitment) ledger.Slot {
	if level == ledger.Finalized {
		return n.finalized
	}
	return n.confirmed
}

func (n *fakeNode) Context(level ledger.Commitment) ledger.Slot {
	return cmp.Or(n.context, n.Newest(level))
}
func (n *fakeNode) First() ledger.Slot   { return n.first }
func (n *fakeNode) Slots() []ledger.Slot { return slices.Sorted(maps.Keys(n.blocks)) }

func (n *fakeNode) Block(slot ledger.Slot, _ *nodetest.Options) (any, *nodetest.CallError) {
	switch b := n.blocks[slot]; {
	case slot < n.first:
		return nil, &nodetest.CallError{Code: cmp.Or(n.unkept, -32001), Message: "Block cleaned up, does not exist on node"}
	case b == nil:
		return nil, nil
	default:
		return json.RawMessage(b.json()), nil
	}
}

func (n *fakeNode) Account(key ledger.Pubkey, _ ledger.Slot) (*ledger.AccountWrite, []byte) {
	n.asked[key]++
	a := n.accounts[key]
	if a.lamports == 0 {
		return nil, nil
	}
	return &ledger.AccountWrite{Lamports: ledger.Lamports(a.lamports), Owner: a.owner, RentEpoch: 1<<64 - 1}, a.data
}
