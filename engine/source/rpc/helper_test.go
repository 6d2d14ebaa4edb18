package rpc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// fakeNode answers JSON-RPC from a scripted ledger, over connections in memory.
type fakeNode struct {
	mu        sync.Mutex
	blocks    map[ledger.Slot]*fakeBlock // present ones, in the order of their parents
	confirmed ledger.Slot
	finalized ledger.Slot
	first     ledger.Slot // blocks below are not kept
	context   ledger.Slot // of getMultipleAccounts; 0: confirmed
	accounts  map[string]json.RawMessage
	calls     map[string]int
	asked     [][]string // keys of each getMultipleAccounts

	// fault answers a call in the node's place, if it returns true. It is called under the lock.
	fault func(w http.ResponseWriter, method string, params []json.RawMessage) bool

	server    *http.Server
	closing   sync.Once
	answering sync.WaitGroup // to which gone adds no more
	goneMu    sync.Mutex
	gone      bool
	conns     chan net.Conn
	done      chan struct{}
}

// fakeBlock is a block as the node has it.
type fakeBlock struct {
	slot, parent   ledger.Slot
	hash, previous ledger.Hash
	fields         string // more fields of its JSON
}

func startNode(t testing.TB) *fakeNode {
	n := &fakeNode{
		blocks: map[ledger.Slot]*fakeBlock{}, accounts: map[string]json.RawMessage{}, calls: map[string]int{},
		conns: make(chan net.Conn), done: make(chan struct{}),
	}
	n.server = &http.Server{Handler: n, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = n.server.Serve(n) })
	t.Cleanup(func() {
		n.server.Close()
		serving.Wait()
		n.goneMu.Lock()
		n.gone = true
		n.goneMu.Unlock()
		n.answering.Wait()
	})
	return n
}

// Accept, Close and Addr make the node a listener.
func (n *fakeNode) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *fakeNode) Close() error {
	n.closing.Do(func() { close(n.done) })
	return nil
}

func (n *fakeNode) Addr() net.Addr { return &net.TCPAddr{} }

func (n *fakeNode) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case n.conns <- theirs:
		return ours, nil
	case <-n.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// config returns how to follow the node.
func (n *fakeNode) config() Config {
	u, err := url.Parse("http://user:secret@node.example:8899/path-key?api-key=secret")
	if err != nil {
		panic(err)
	}
	return Config{URL: u, Dial: n.dial, Random: func(int64) int64 { return 0 }, Logger: slog.New(slog.DiscardHandler)}
}

// wait waits while the node is there.
func (n *fakeNode) wait(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-n.done:
		return false
	}
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

// add puts blocks on top of each other, the first on parent. Their hashes are made of their slots.
func (n *fakeNode) add(parent ledger.Slot, slots ...ledger.Slot) {
	n.prepare(parent, slots...)
	n.confirm(slots[len(slots)-1])
}

// confirm makes blocks visible up to a slot.
func (n *fakeNode) confirm(slot ledger.Slot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.confirmed = max(n.confirmed, slot)
}

// prepare puts blocks on top of each other that are not confirmed yet.
func (n *fakeNode) prepare(parent ledger.Slot, slots ...ledger.Slot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, slot := range slots {
		b := &fakeBlock{slot: slot, parent: parent, hash: hashOf(fmt.Sprint(slot)), previous: hashOf(fmt.Sprint(parent))}
		if p := n.blocks[parent]; p != nil {
			b.previous = p.hash
		}
		n.blocks[slot] = b
		parent = slot
	}
}

// pay has a block touch accounts, which have so many lamports after it.
func (n *fakeNode) pay(slot ledger.Slot, lamports uint64, keys ...ledger.Pubkey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	var balances []uint64
	for _, k := range keys {
		names, balances = append(names, k.String()), append(balances, lamports)
	}
	var sig ledger.Signature
	copy(sig[:], fmt.Sprint("signature", slot))
	text := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	n.blocks[slot].fields = fmt.Sprintf(`,"transactions":[{"transaction":{"signatures":[%q],"message":{"accountKeys":%s}},"meta":{"err":null,"fee":5000,"postBalances":%s}}]`,
		sig.String(), text(names), text(balances))
}

// hold has the node know an account.
func (n *fakeNode) hold(key ledger.Pubkey, lamports uint64, owner ledger.Pubkey, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accounts[key.String()] = json.RawMessage(fmt.Sprintf(`{"lamports":%d,"owner":%q,"executable":false,"rentEpoch":18446744073709551615,"space":%d,"data":[%q,"base64"]}`,
		lamports, owner.String(), len(data), base64.StdEncoding.EncodeToString(data)))
}

func (b *fakeBlock) json() string {
	return fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":%d,"blockTime":1,"blockHeight":%d%s}`,
		b.hash.String(), b.previous.String(), b.parent, b.slot, b.fields)
}

// ServeHTTP answers a call.
func (n *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.goneMu.Lock()
	if !n.gone {
		n.answering.Add(1)
		defer n.answering.Done()
	}
	n.goneMu.Unlock()
	var call struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &call); err != nil {
		http.Error(w, "bad", http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[call.Method]++
	if n.fault != nil && n.fault(w, call.Method, call.Params) {
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, call.ID, n.answerLocked(call.Method, call.Params))
}

func (n *fakeNode) answerLocked(method string, params []json.RawMessage) string {
	var o struct {
		Commitment     string
		MinContextSlot ledger.Slot
		DataSlice      *struct{ Offset, Length int }
	}
	if len(params) > 0 {
		_ = json.Unmarshal(params[len(params)-1], &o)
	}
	top := n.confirmed
	if o.Commitment == "finalized" {
		top = n.finalized
	}
	slot := func(i int) (s ledger.Slot) { _ = json.Unmarshal(params[i], &s); return s }
	switch method {
	case "getSlot":
		return fmt.Sprintf(`"result":%d`, top)
	case "getFirstAvailableBlock":
		return fmt.Sprintf(`"result":%d`, n.first)
	case "getBlocks":
		if slot(1) < slot(0) || slot(1)-slot(0) > 500_000 {
			return `"error":{"code":-32602,"message":"Slot range too large; max 500000"}`
		}
		list := []ledger.Slot{}
		for s := range n.blocks {
			if s >= max(slot(0), n.first) && s <= min(slot(1), top) {
				list = append(list, s)
			}
		}
		slices.Sort(list)
		text, _ := json.Marshal(list)
		return fmt.Sprintf(`"result":%s`, text)
	case "getBlock":
		b := n.blocks[slot(0)]
		switch {
		case slot(0) < n.first:
			return `"error":{"code":-32001,"message":"Block cleaned up, does not exist on node"}`
		case b == nil:
			return `"error":{"code":-32007,"message":"Slot was skipped, or missing due to ledger jump to recent snapshot"}`
		case slot(0) > top:
			return `"error":{"code":-32004,"message":"Block not available for slot"}`
		}
		return `"result":` + b.json()
	case "getMultipleAccounts":
		at := n.context
		if at == 0 {
			at = top
		}
		if at < o.MinContextSlot {
			return `"error":{"code":-32016,"message":"Minimum context slot has not been reached"}`
		}
		var keys []string
		_ = json.Unmarshal(params[0], &keys)
		n.asked = append(n.asked, keys)
		return fmt.Sprintf(`"result":{"context":{"slot":%d},"value":%s}`, at, n.valuesLocked(keys, o.DataSlice))
	}
	return `"error":{"code":-32601,"message":"Method not found"}`
}

// valuesLocked returns accounts, their data cut where a part was asked for.
func (n *fakeNode) valuesLocked(keys []string, part *struct{ Offset, Length int }) string {
	values := make([]map[string]any, len(keys))
	for i, k := range keys {
		if n.accounts[k] == nil {
			continue
		}
		_ = json.Unmarshal(n.accounts[k], &values[i])
		values[i]["rentEpoch"] = json.RawMessage("18446744073709551615")
		values[i]["lamports"] = json.RawMessage(fmt.Sprintf("%.0f", values[i]["lamports"]))
		data, _ := base64.StdEncoding.DecodeString(values[i]["data"].([]any)[0].(string))
		if part != nil {
			data = data[:min(len(data), part.Length)]
		}
		values[i]["data"] = []string{base64.StdEncoding.EncodeToString(data), "base64"}
	}
	text, _ := json.Marshal(values)
	return string(text)
}

// recorder keeps what a source emits, and ends it when it has enough.
type recorder struct {
	mu     sync.Mutex
	events []ledger.Event
	enough func(*recorder) bool
	stop   context.CancelFunc
}

func (r *recorder) emit(ctx context.Context, e ledger.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	if r.enough != nil && r.enough(r) {
		r.stop()
	}
	return ctx.Err()
}

func (r *recorder) blocks() (list []*ledger.Block) {
	for _, e := range r.events {
		if b, ok := e.(*ledger.Block); ok {
			list = append(list, b)
		}
	}
	return list
}

func (r *recorder) slots() (list []ledger.Slot) {
	for _, b := range r.blocks() {
		list = append(list, b.Slot)
	}
	return list
}

// follow runs a source until it emitted enough.
func follow(t testing.TB, s *Source, from *ledger.ResumePoint, enough func(*recorder) bool) *recorder {
	t.Helper()
	return followInto(t, s, from, &recorder{}, enough)
}

// followInto is follow for a recorder that somebody looks at meanwhile.
func followInto(t testing.TB, s *Source, from *ledger.ResumePoint, r *recorder, enough func(*recorder) bool) *recorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.enough, r.stop = enough, cancel
	if err := s.Run(ctx, from, r.emit); err != context.Canceled {
		t.Fatalf("Run: err = %v", err)
	}
	return r
}

// untilSlot is enough when the block of a slot was emitted.
func untilSlot(slot ledger.Slot) func(*recorder) bool {
	return func(r *recorder) bool {
		b, ok := r.events[len(r.events)-1].(*ledger.Block)
		return ok && b.Slot >= slot
	}
}
