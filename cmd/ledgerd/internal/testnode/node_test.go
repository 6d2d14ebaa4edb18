package testnode

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"ledgerd/engine/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const small = "seed=3,accounts=150,tps=20,slot_time=0,fork_rate=0.1,skip_rate=0.1,slots=40"

func simulated(t testing.TB, parameters string, plan Plan) *Ledger {
	t.Helper()
	l, err := Simulated(parameters, plan)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func started(t testing.TB, l *Ledger, c Config) *Node {
	t.Helper()
	n := New(l, c)
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// everything is a request for all that we read, from a slot on if it is known.
func everything(from ledger.Opt[ledger.Slot], slices ...slice) []byte {
	filter := func(name string, f wire) wire { return wire(nil).bytes(1, []byte(name)).bytes(2, f) }
	w := wire(nil).bytes(1, filter("a", nil)).bytes(2, filter("s", wire(nil).number(2, 1))).bytes(3, filter("t", nil)).bytes(5, filter("m", nil))
	for _, s := range slices {
		w = w.bytes(7, wire(nil).number(1, s.offset).number(2, s.length))
	}
	if from.Known {
		w = w.number(11, uint64(from.Value))
	}
	return w
}

// subscription is a raw client of the stream.
type subscription struct {
	t      testing.TB
	stream grpc.ClientStream
	cancel context.CancelFunc
}

func subscribe(t testing.TB, n *Node, token string, request []byte) *subscription {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(n.StreamURL(), "http://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return n.Dial(ctx, "tcp", address) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "x-token", token))
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/geyser.Geyser/Subscribe")
	if err != nil {
		t.Fatal(err)
	}
	s := &subscription{t, stream, cancel}
	s.send(request)
	// A subscriber hears what comes after it; a pong says that it is one. What is refused has none.
	if r, _ := parseRequest(request); !r.fromSlot.Known {
		s.send(wire(nil).bytes(9, wire(nil).number(1, 77)))
		if raw, err := s.next(); err == nil && !bytes.Contains(raw, wire(nil).bytes(9, wire(nil).number(1, 77))) {
			t.Fatalf("a ping was answered %x", raw)
		}
	}
	return s
}

func (s *subscription) send(request []byte) {
	s.t.Helper()
	if err := s.stream.SendMsg(&request); err != nil && err != io.EOF { // EOF: next tells why it ended
		s.t.Fatal(err)
	}
}

func (s *subscription) next() ([]byte, error) {
	var raw []byte
	err := s.stream.RecvMsg(&raw)
	return raw, err
}

func question(method string, params ...any) string {
	b, _ := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	return string(b)
}

// post posts a body to the node and returns the answer.
func post(t testing.TB, n *Node, body string) (status int, header http.Header, answer []byte, err error) {
	t.Helper()
	transport := &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, n.CallsURL(), strings.NewReader(body))
	request.Header.Set("X-Token", n.config.Token)
	r, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, r.Header, b, err
}

// wholeBlock are the options with which a block is asked for.
var wholeBlock = object{"commitment": "confirmed", "encoding": "json", "transactionDetails": "full", "maxSupportedTransactionVersion": 0}
