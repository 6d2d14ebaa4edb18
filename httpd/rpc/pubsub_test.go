package rpc

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/stream"
)

// patience bounds how long the test waits for what must come.
const patience = time.Minute

// feed publishes blocks to a hub.
type feed struct {
	ledger  *fakeLedger
	hub     *stream.Hub
	seq     ledger.Seq
	version ledger.Version
}

// publish tells of a block that has a transaction, which failed if the slot is odd, or with a tip before of the way back to a block, that changed accounts.
func (f *feed) publish(sig ledger.Signature, kind ledger.RecordKind, slot, from ledger.Slot, accounts ...ledger.Account) {
	head := *f.ledger.Newest.Load()
	tip := &head.Tips[ledger.Processed]
	parent := tip.Slot
	f.version++
	tip.Version, tip.Slot = f.version, slot
	r := &ledger.Record{Version: tip.Version, Kind: kind, Slot: slot, FromSlot: from, FirstSeq: f.seq + 1}
	f.ledger.Chain = slices.DeleteFunc(f.ledger.Chain, func(b *ledger.Block) bool { return b.Slot > slot })
	if kind == ledger.BlockRecord {
		r.Block = &ledger.Block{Slot: slot, ParentSlot: parent}
		r.Block.AddTransaction(ledger.Transaction{Signature: sig, Success: ledger.Some(slot%2 == 0)})
		f.ledger.Chain = append(f.ledger.Chain, r.Block)
	}
	for _, a := range accounts {
		before := f.ledger.Held[a.Pubkey]
		u := ledger.Update{Account: a, DataBefore: ledger.DataBefore(&before, &a)}
		if before.Exists() && before.Owner != a.Owner {
			u.OwnerBefore = ledger.Some(before.Owner)
		}
		if before.Token != nil && a.Token == nil {
			u.WalletBefore = ledger.Some(before.Token.Owner)
		}
		r.Updates = append(r.Updates, u)
		f.ledger.Put(a)
	}
	f.seq = r.LastSeq()
	tip.Seq = f.seq
	f.ledger.Newest.Store(&head)
	f.hub.Publish(&ledger.Publication{Head: &head, Records: []*ledger.Record{r}})
}

// reach tells that the newest block has reached a level.
func (f *feed) reach(level ledger.Commitment) {
	head := *f.ledger.Newest.Load()
	for at := ledger.Confirmed; at <= level; at++ {
		head.Tips[at] = head.Tips[ledger.Processed]
	}
	f.ledger.Newest.Store(&head)
	f.hub.Publish(&ledger.Publication{Head: &head})
}

// serveHub serves a door that has a hub, which ends with the test.
func serveHub(t *testing.T, s *settings) (*feed, *rig) {
	s.hub.Ledger = s.fakeLedger
	newest := s.Newest.Load()
	f := &feed{ledger: s.fakeLedger, hub: stream.New(s.hub), version: newest.Tips[ledger.Processed].Version}
	f.hub.Publish(&ledger.Publication{Head: newest})
	s.door.Hub = f.hub
	r := serve(t, s)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must(t, f.hub.Shutdown(ctx))
	})
	return f, r
}

// client is a WebSocket of which one message is read after another.
type client struct {
	testing.TB
	*websocket.Conn
}

// dial opens a WebSocket, which ends with the test.
func (r *rig) dial() client {
	r.Helper()
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return r.connect() }}
	c, _, err := dialer.Dial("ws://ledger/", nil)
	must(r, err)
	r.Cleanup(func() { _ = c.Close() })
	return client{r.TB, c}
}

// ask sends a call and returns what comes next.
func (c client) ask(method, params string) string {
	c.Helper()
	text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	must(c, c.WriteMessage(websocket.TextMessage, []byte(names().Replace(text))))
	return c.next()
}

func (c client) next() string {
	c.Helper()
	must(c, c.SetReadDeadline(time.Now().Add(patience)))
	_, text, err := c.ReadMessage()
	must(c, err)
	return string(text)
}

// TestNotificationsOverAWebSocketAreNotAnswered: not even where something is wrong with their parameters, as over HTTP.
func TestNotificationsOverAWebSocketAreNotAnswered(t *testing.T) {
	_, r := serveHub(t, &settings{fakeLedger: newFakeLedger()})
	c := r.dial()
	for _, notification := range []string{`"slotSubscribe"`, `"slotSubscribe","params":{}`, `"slotSubscribe","params":[1]`, `"none","params":1`, `""`} {
		must(t, c.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","method":`+notification+`}`)))
		if got := c.ask("rootUnsubscribe", "[9]"); !strings.HasSuffix(got, `"id":1}`) {
			t.Fatalf("%s is answered: %s", notification, got)
		}
	}
}

// TestSubscribingEncodesNoData: a client pays for a short message, and the account may have 10 MiB.
func TestSubscribingEncodesNoData(t *testing.T) {
	const size = 10 << 20
	a := ledger.Account{Pubkey: testKey(1), Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, size))}
	for _, encoding := range []string{asBinary, asBase58, asBase64, asZstd, asParsed} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		must(t, (&form{encoding, encode.WholeData}).canShow(&a))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > size/100 {
			t.Errorf("%s: to say that the account can be shown takes %d bytes", encoding, took)
		}
	}
}

// TestLibrariesSubscribeToManyAtOnce: web3.js sends a call for each account that is followed as soon as it is connected, and again whenever it is connected
// anew. Pings are not calls.
func TestLibrariesSubscribeToManyAtOnce(t *testing.T) {
	const many = 1000
	_, r := serveHub(t, &settings{fakeLedger: newFakeLedger()})
	c := r.dial()
	for _, call := range []func(i int) string{
		func(i int) string {
			return fmt.Sprintf(`"accountSubscribe","params":[%q]`, ledger.Pubkey{1, byte(i), byte(i >> 8)})
		},
		func(i int) string { return fmt.Sprintf(`"accountUnsubscribe","params":[%d]`, i+1) },
	} {
		var writing sync.WaitGroup
		writing.Go(func() {
			for i := range many {
				_ = c.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":`+call(i)+`}`))
			}
		})
		for range many {
			if got := c.next(); strings.Contains(got, "error") {
				t.Fatal(got)
			}
		}
		writing.Wait()
	}
	for range 200 {
		must(t, c.WriteMessage(websocket.PingMessage, nil))
	}
	must(t, c.SetReadDeadline(time.Now().Add(patience)))
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.ClosePolicyViolation) {
		t.Errorf("a flood of pings ends with %v, want close code 1008", err)
	}
}

// TestMessagesOfManyValuesLeaveNoParser: a parser that is used again keeps the memory of the largest tree that it made.
func TestMessagesOfManyValuesLeaveNoParser(t *testing.T) {
	for n, kept := range map[int]bool{fewValues / 2: true, fewValues + 1: false, maxSaidValues / 2: false} {
		d, err := New(Config{Ledger: newFakeLedger()})
		must(t, err)
		s := &session{}
		d.sessions.New = func() any { return s }
		d.talk(nil, []byte(`{"jsonrpc":"2.0","method":"m","params":[`+strings.Repeat("0,", n)+`0]}`)) // which is not answered
		if got := !reflect.ValueOf(s.parser).IsZero(); got != kept {
			t.Errorf("%d values: the parser is kept: %v, want %v", n, got, kept)
		}
	}
}
