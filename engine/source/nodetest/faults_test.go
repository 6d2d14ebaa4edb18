package nodetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/test/bufconn"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// heard is a stream that keeps what a subscriber was sent.
type heard struct {
	grpc.ServerStream
	sent []string
}

// SendMsg implements grpc.ServerStream.
func (h *heard) SendMsg(m any) error {
	h.sent = append(h.sent, string(*m.(*[]byte)))
	return nil
}

// toldWith returns all that a node with some faults tells a subscriber that asks for a slot, and one who asks for blocks, and
// how long that takes.
func toldWith(t *testing.T, l *Ledger, faults ...Fault) (told string) {
	t.Helper()
	all := filters{"all": {InterslotUpdates: true}}
	request := &Request{Accounts: all, Slots: all, Transactions: all, BlocksMeta: all, FromSlot: ledger.Some(l.main[3].Slot)}
	calls := []string{
		`"method":"getBlocksWithLimit","params":[0,1000,{"commitment":"finalized"}]}`,
		fmt.Sprintf(`"method":"getBlock","params":[%d,{"commitment":"confirmed","encoding":"json","transactionDetails":"full",
			"maxSupportedTransactionVersion":0}]}`, l.main[4].Slot),
	}
	bubbletest.Test(t, func(*testing.T) {
		n := New(l, Config{ReplaySlots: 60})
		live := l.Slots / 2 // slots that are no replay
		n.Advance(l.Slots - live)
		for _, f := range faults {
			n.Inject(f)
		}
		begun, h := time.Now(), &heard{}
		s := subscriber{node: n, stream: h, request: request}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		ended := s.begin()
		n.Advance(live)
		if ended == nil {
			ended = s.serve(ctx, nil, nil)
		}
		told = fmt.Sprint(h.sent, ended)
		for _, call := range calls {
			answer := httptest.NewRecorder()
			n.serveCall(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"jsonrpc":"2.0","id":1,`+call)))
			told += fmt.Sprint(answer.Code, answer.Header(), answer.Body, time.Since(begun))
		}
	})
	return told
}

// Every fault changes what is told, each in each of its ways to something else: a schedule without effect would prove nothing.
func TestEveryFaultIsHeard(t *testing.T) {
	l, err := Simulated(small, 0)
	ledgertest.Must(t, err)
	ways := map[FaultKind]int{WrongParent: 2, Equivocate: 2}
	known := map[string]string{toldWith(t, l): "no fault"}
	for kind := Kick; kind < faultKinds; kind++ {
		for how := range max(ways[kind], 1) {
			name := fmt.Sprintf("%v, way %d", kind, how)
			told := toldWith(t, l, Fault{Kind: kind, How: how, N: 3, For: time.Minute, Code: codes.Internal})
			same, isKnown := known[told]
			ledgertest.Holds(t, !isKnown, "with %s all is told as with %s", name, same)
			known[told] = name
		}
	}
}

// Of 5,000 bytes some come within 9 seconds after a fault of the wire, and the connection ends or does not.
func TestFaultsOfTheWire(t *testing.T) {
	const rest = 9*time.Second + time.Millisecond
	trickled := trickleBytes * int(rest/trickleEvery)
	tests := map[Fault]string{
		{Kind: Cut, After: 3000}: "3000 true",
		{Kind: Cut}:              "0 true",
		{Kind: Stall, After: 3000, For: time.Minute}: "3000 false",
		{Kind: Stall, For: 8 * time.Second}:          "5000 false",
		{Kind: Trickle, For: time.Minute}:            fmt.Sprint(trickled, " false"),
		{Kind: Down, For: time.Second}:               "0 true",
	}
	for fault, want := range tests {
		bubbletest.Test(t, func(t *testing.T) {
			pipe := bufconn.Listen(64 << 10)
			l := newFaultListener(pipe)
			l.inject(fault)
			var serving sync.WaitGroup
			defer serving.Wait()
			serving.Go(func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					_, _ = c.Write(make([]byte, 5000))
				}
			})
			defer pipe.Close()
			conn, err := pipe.Dial()
			ledgertest.Must(t, err)
			_ = conn.SetReadDeadline(time.Now().Add(rest))
			n, err := io.Copy(io.Discard, conn)
			ledgertest.Equal(t, fmt.Sprint(n, err == nil), want, "after %+v", fault)
		})
	}
}
