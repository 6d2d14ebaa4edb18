package nodetest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"ledgerd/engine/ledger"
)

// Config says how a node behaves. The zero value is an open node that keeps 150 slots for replay.
type Config struct {
	Token       string      // asked for as x-token, or by JSON-RPC at the end of the path; "": none
	Seed        uint64      // of the order in which messages come
	ReplaySlots ledger.Slot // how far back from_slot reaches; 0: 150
	NoReplay    bool        // from_slot is refused as unsupported
	NoAny       bool        // who asks for all accounts or all transactions is refused
	InMemory    bool        // Start listens in memory: only Dial reaches the node
}

// Node is a node that tells a ledger. New makes it, Start opens its listeners, Close ends it.
type Node struct {
	config Config
	ledger *Ledger

	faults    pending
	listeners [2]*faultListener // by Side, as the two below
	addresses [2]string
	inMemory  [2]*bufconn.Listener
	stream    *grpc.Server
	calls     *http.Server
	serving   sync.WaitGroup
	ctx       context.Context // ends with Close
	stop      context.CancelFunc

	log   []*message // all that is told, in order
	ends  []int      // how much of log was told after each slot, 0 before the first
	views []view     // what JSON-RPC knew then

	mu      sync.Mutex
	random  *rand.Rand
	played  int // slots
	changed chan struct{}
	granted int // subscriptions
}

// view is what JSON-RPC knows at some moment: the newest block of each level.
type view [ledger.Commitments]ledger.Slot

// New returns a node that has told nothing yet.
func New(l *Ledger, c Config) *Node {
	c.ReplaySlots = cmp.Or(c.ReplaySlots, 150)
	n := &Node{
		config: c, ledger: l, changed: make(chan struct{}), random: rand.New(rand.NewPCG(c.Seed, 1)),
		ends: make([]int, 1), views: make([]view, 1),
	}
	script := script{random: n.random}
	for at, events := range l.steps {
		n.log = append(n.log, script.messages(events)...)
		n.ends, n.views = append(n.ends, len(n.log)), append(n.views, l.after(n.views[at], events))
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// Start listens on 127.0.0.1, or in memory, and serves until Close.
func (n *Node) Start() error {
	for side := range n.listeners {
		n.inMemory[side], n.addresses[side] = bufconn.Listen(64<<10), fmt.Sprintf("side-%d.nodetest:1", side)
		n.listeners[side] = newFaultListener(n.inMemory[side])
		if n.config.InMemory {
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		n.listeners[side], n.addresses[side] = newFaultListener(l), l.Addr().String()
	}
	n.stream = NewStreamServer(n.subscribe)
	n.calls = &http.Server{
		Handler: http.HandlerFunc(n.serveCall), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return n.ctx },
	}
	n.serving.Go(func() { _ = n.stream.Serve(n.listeners[Stream]) })
	n.serving.Go(func() { _ = n.calls.Serve(n.listeners[Calls]) })
	return nil
}

// Close ends every connection, and waits until nothing is served any more.
func (n *Node) Close() error {
	n.stop()
	n.stream.Stop()
	err := n.calls.Close()
	n.serving.Wait()
	return err
}

// StreamURL returns where the stream is served: http://HOST:PORT.
func (n *Node) StreamURL() string { return "http://" + n.addresses[Stream] }

// CallsURL returns where JSON-RPC is served: http://HOST:PORT.
func (n *Node) CallsURL() string { return "http://" + n.addresses[Calls] }

// Dial connects to one of the addresses of a node in memory; nothing else is reached.
func (n *Node) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	side := slices.Index(n.addresses[:], address)
	if side < 0 {
		return nil, fmt.Errorf("no test node at %s", address)
	}
	return n.inMemory[side].DialContext(ctx)
}

// Inject has a fault happen.
func (n *Node) Inject(f Fault) {
	if f.Kind <= Down {
		n.listeners[f.On].inject(f)
		return
	}
	n.faults.add(f)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wakeLocked()
}

// wakeLocked has everybody who waits for messages look again.
func (n *Node) wakeLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// Heal ends every fault that has not hit yet, or lasts.
func (n *Node) Heal() {
	n.faults.clear()
	for _, l := range n.listeners {
		l.heal()
	}
}

// after returns what JSON-RPC knows after some events.
func (l *Ledger) after(now view, events []event) view {
	for _, e := range events {
		switch {
		case e.what == produced && slices.Contains(l.main, e.block):
			now[ledger.Processed] = e.block.Slot
		case e.what == confirmed:
			now[ledger.Confirmed] = e.block.Slot
		case e.what == finalized:
			now[ledger.Finalized] = e.block.Slot
		}
	}
	return now
}

// Advance plays the next slots. It returns false once the ledger is told.
func (n *Node) Advance(slots int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	isMore := n.played+slots <= n.ledger.Slots
	n.played = min(n.played+slots, n.ledger.Slots)
	n.wakeLocked()
	return isMore
}

// Tip returns the newest block of a level on the chain that stays.
func (n *Node) Tip(level ledger.Commitment) ledger.Slot { return n.tipBefore(0, level) }

// tipBefore is Tip as it was some slots ago.
func (n *Node) tipBefore(slots int, level ledger.Commitment) ledger.Slot {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.views[max(0, n.played-slots)][level]
}

// Run plays a slot each slotTime until ctx ends or the ledger is told.
func (n *Node) Run(ctx context.Context, slotTime time.Duration) {
	for n.Advance(1) {
		select {
		case <-time.After(slotTime):
		case <-ctx.Done():
			return
		}
	}
}

// Subscriptions returns how many were granted so far.
func (n *Node) Subscriptions() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.granted
}

// told returns the messages from a position on, and a channel that is closed when there are more.
func (n *Node) told(from int) ([]*message, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log[from:n.ends[n.played]], n.changed
}
