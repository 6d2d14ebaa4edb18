package testnode

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/yellowstone"
)

// heard is a stream that keeps what a subscriber was sent.
type heard struct {
	grpc.ServerStream
	updates []yellowstone.Update
	garbage int // messages that do not decode
	err     error
}

// SendMsg implements grpc.ServerStream.
func (h *heard) SendMsg(m any) error {
	var u yellowstone.Update
	if err := yellowstone.Decode(*m.(*[]byte), &u); err != nil {
		h.garbage++
		return nil
	}
	h.updates = append(h.updates, u)
	return nil
}

// hear returns what a node with a fault tells a subscriber to everything, and how the stream ends: as canceled
// unless the fault ends it.
func hear(l *Ledger, f Fault) *heard {
	n := New(l, Config{Plain: true})
	n.Inject(f)
	n.Advance(l.Slots)
	h := &heard{}
	names := map[messageKind]string{accountMessage: "a", slotMessage: "s", transactionMessage: "t", metaMessage: "m"}
	s := subscriber{node: n, stream: h, request: &subscribeRequest{filters: names, interslot: true}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h.err = s.serve(ctx, nil, nil)
	return h
}

// count returns how many updates of a kind came, of slots' statuses those of one.
func (h *heard) count(kind yellowstone.Kind, status yellowstone.SlotStatus) (n int) {
	for _, u := range h.updates {
		if u.Kind == kind && (kind != yellowstone.Slot || u.Status == status) {
			n++
		}
	}
	return n
}

// wrongLinks returns how many blocks name a parent that was not told.
func (h *heard) wrongLinks() (wrong int) {
	hash := map[ledger.Slot]ledger.Hash{}
	for _, u := range h.updates {
		if u.Kind == yellowstone.Meta {
			if p, ok := hash[u.Head.ParentSlot]; u.Slot > 1 && (!ok || p != u.Head.ParentHash.Value) {
				wrong++
			}
			hash[u.Slot] = u.Head.Hash
		}
	}
	return wrong
}

func TestFaultsOfTheStream(t *testing.T) {
	l := simulated(t, small, Plan{})
	straight := hear(l, Fault{Kind: Stale})
	metas, confirmedOnes := straight.count(yellowstone.Meta, 0), straight.count(yellowstone.Slot, yellowstone.Confirmed)
	if status.Code(straight.err) != codes.Canceled || straight.garbage > 0 || metas < len(l.main) || confirmedOnes != len(l.main) {
		t.Fatalf("a straight run: %v, %d nonsense, %d heads, %d confirmed", straight.err, straight.garbage, metas, confirmedOnes)
	}
	all := len(straight.updates)
	type check func(h *heard) bool
	fewer := func(kind yellowstone.Kind, s yellowstone.SlotStatus, by int) check {
		return func(h *heard) bool { return h.count(kind, s) == straight.count(kind, s)-by && len(h.updates) == all-by }
	}
	more := func(by int) check { return func(h *heard) bool { return len(h.updates) == all+by } }
	wrong := func(h *heard) bool { return len(h.updates) == all && h.wrongLinks() > straight.wrongLinks() }
	tests := map[string]struct {
		fault Fault
		want  check
	}{
		"kick":              {Fault{Kind: Kick, Code: codes.Internal}, func(h *heard) bool { return status.Code(h.err) == codes.Internal }},
		"kick without word": {Fault{Kind: Kick}, func(h *heard) bool { return h.err == nil }},
		"duplicate":         {Fault{Kind: Duplicate, N: 1}, more(1)},
		"wrong parent":      {Fault{Kind: WrongParent, After: 3}, wrong},
		"wrong parent slot": {Fault{Kind: WrongParent, How: 1, After: 3}, wrong},
		"another block":     {Fault{Kind: Equivocate}, wrong},
		"two blocks":        {Fault{Kind: Equivocate, How: 1}, func(h *heard) bool { return h.count(yellowstone.Meta, 0) == metas+1 }},
		"no heads":          {Fault{Kind: OmitMeta, N: 3}, fewer(yellowstone.Meta, 0, 3)},
		"no transactions":   {Fault{Kind: OmitTx, N: 4, After: 5}, fewer(yellowstone.Transaction, 0, 4)},
		"no processed":      {Fault{Kind: OmitProcessed}, fewer(yellowstone.Slot, yellowstone.Processed, 1)},
		"no confirmed":      {Fault{Kind: OmitConfirmed, N: 2}, fewer(yellowstone.Slot, yellowstone.Confirmed, 2)},
		"no finalized":      {Fault{Kind: OmitFinalized, N: 2}, fewer(yellowstone.Slot, yellowstone.Finalized, 2)},
	}
	for name, tt := range tests {
		if h := hear(l, tt.fault); !tt.want(h) {
			t.Errorf("%s: %d of %d messages, %d heads, ended with %v", name, len(h.updates), all, h.count(yellowstone.Meta, 0), h.err)
		}
	}
	for how := range garbageWays {
		if h := hear(l, Fault{Kind: Garbage, How: how}); len(h.updates)+h.garbage != all+1 {
			t.Errorf("garbage %d: %d messages and %d of nonsense, want %d and one", how, len(h.updates), h.garbage, all)
		}
	}
}

func TestFaultsOfTheWire(t *testing.T) {
	const sent = 5000
	type row struct {
		fault Fault
		bytes int64 // that come within 9 seconds
		ends  bool  // the connection does
	}
	tests := map[string]row{
		"cut":             {Fault{Kind: Cut, After: 3000}, 3000, true},
		"cut at once":     {Fault{Kind: Cut}, 0, true},
		"stall":           {Fault{Kind: Stall, After: 3000, For: time.Minute}, 3000, false},
		"stall that ends": {Fault{Kind: Stall, For: 8 * time.Second}, sent, false},
		"trickle":         {Fault{Kind: Trickle, For: time.Minute}, trickleBytes * int64(9*time.Second/trickleEvery), false},
		"down":            {Fault{Kind: Down, For: time.Second}, 0, true},
	}
	bubble.Each(t, tests, func(t *testing.T, tt row) {
		pipe := bufconn.Listen(64 << 10)
		l := newFaultListener(pipe)
		l.inject(tt.fault)
		var serving sync.WaitGroup
		defer serving.Wait()
		serving.Go(func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				_, _ = c.Write(make([]byte, sent))
			}
		})
		defer pipe.Close()
		conn, err := pipe.Dial()
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(9*time.Second + time.Millisecond))
		if n, err := io.Copy(io.Discard, conn); n != tt.bytes || (err == nil) != tt.ends {
			t.Errorf("%v: %d bytes came, %v, want %d", tt.fault, n, err, tt.bytes)
		}
	})
}

func TestFaultsOfCalls(t *testing.T) {
	l := simulated(t, small, Plan{})
	getBlock, _ := json.Marshal(object{"jsonrpc": "2.0", "id": 1, "method": "getBlock", "params": []any{
		l.main[len(l.main)/2].Slot,
		object{"commitment": "confirmed", "encoding": "json", "transactionDetails": "full", "maxSupportedTransactionVersion": 0},
	}})
	type outcome struct {
		*httptest.ResponseRecorder
		took   time.Duration
		answer struct {
			ID     int
			Result *json.RawMessage
			Error  callError
		}
		err error // of reading the answer
	}
	ask := func(n *Node) (o outcome) {
		begun := time.Now()
		o.ResponseRecorder = httptest.NewRecorder()
		n.serveCall(o, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(getBlock)))
		o.took, o.err = time.Since(begun), json.Unmarshal(o.Body.Bytes(), &o.answer)
		return o
	}
	code := func(want int) func(outcome) bool { return func(o outcome) bool { return o.answer.Error.Code == want } }
	nonsense := func(o outcome) bool { return o.err != nil || o.answer.ID != 1 || o.answer.Result == nil }
	tests := map[string]struct {
		fault Fault
		want  func(o outcome) bool
	}{
		"too many":              {Fault{Kind: RateLimit}, func(o outcome) bool { return o.Code == 429 && o.Header().Get("Retry-After") == "1" }},
		"too many without time": {Fault{Kind: RateLimit, How: 1}, func(o outcome) bool { return o.Code == 429 && o.Header().Get("Retry-After") == "" }},
		"too many with a date": {Fault{Kind: RateLimit, How: 2}, func(o outcome) bool {
			_, err := http.ParseTime(o.Header().Get("Retry-After"))
			return o.Code == 429 && err == nil
		}},
		"unavailable": {Fault{Kind: ServerError}, func(o outcome) bool { return o.Code == 503 && strings.HasPrefix(o.Body.String(), "<html>") }},
		"broken":      {Fault{Kind: ServerError, How: 1}, func(o outcome) bool { return o.Code == 500 }},
		"gateway":     {Fault{Kind: ServerError, How: 2}, func(o outcome) bool { return o.Code == 502 }},
		"slow":        {Fault{Kind: Slow, For: 5 * time.Second}, func(o outcome) bool { return o.took >= 5*time.Second && o.Code == 200 }},
		"behind":      {Fault{Kind: NodeBehind}, code(codeUnhealthy)},
		"skipped":     {Fault{Kind: Missing}, code(codeSkipped)},
		"long term":   {Fault{Kind: Missing, How: 1}, code(codeSkippedLongTerm)},
		"not yet":     {Fault{Kind: Missing, How: 2}, code(codeNotAvailable)},
		"no status":   {Fault{Kind: Missing, How: 3}, code(codeStatusUnknown)},
		"null":        {Fault{Kind: Missing, How: 4}, func(o outcome) bool { return strings.Contains(o.Body.String(), `"result":null`) }},
		"nonsense":    {Fault{Kind: BadAnswer}, nonsense},
		"half":        {Fault{Kind: BadAnswer, How: 2}, nonsense},
		"another id":  {Fault{Kind: BadAnswer, How: 3}, nonsense},
		"no result":   {Fault{Kind: BadAnswer, How: 4}, nonsense},
		"too deep":    {Fault{Kind: BadAnswer, How: 5}, nonsense},
		"ends early": {Fault{Kind: BadAnswer, How: 1}, func(o outcome) bool {
			return nonsense(o) && o.Header().Get("Content-Length") > "0"
		}},
	}
	bubble.Test(t, func(t *testing.T) {
		for name, tt := range tests {
			n := New(l, Config{})
			n.Advance(l.Slots)
			n.Inject(tt.fault)
			if o := ask(n); !tt.want(o) {
				t.Errorf("%s: %d %v %.200s", name, o.Code, o.Header(), o.Body)
			}
			n.faults.clear()
			if o := ask(n); o.Code != 200 || nonsense(o) {
				t.Errorf("after %s: %d %.200s", name, o.Code, o.Body)
			}
		}
	})
}
