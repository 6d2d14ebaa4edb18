package rpc

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd"
	"ledgerd/httpd/budget"
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

// publish tells of a block, or with a tip before of the way back to one, that changed accounts.
func (f *feed) publish(kind ledger.RecordKind, slot, from ledger.Slot, accounts ...ledger.Account) {
	f.publishWith(testSignature(byte(slot)), kind, slot, from, accounts...)
}

// publishWith is publish for a block that has a transaction. Those at odd slots failed.
func (f *feed) publishWith(sig ledger.Signature, kind ledger.RecordKind, slot, from ledger.Slot, accounts ...ledger.Account) {
	head := *f.ledger.head.Load()
	tip := &head.Tips[ledger.Processed]
	f.version++
	tip.Version, tip.Slot = f.version, slot
	r := &ledger.Record{Version: tip.Version, Kind: kind, Slot: slot, FromSlot: from, FirstSeq: f.seq + 1}
	f.ledger.blocks = slices.DeleteFunc(f.ledger.blocks, func(b *ledger.Block) bool { return b.Slot > slot })
	if kind == ledger.BlockRecord {
		r.Block = &ledger.Block{Slot: slot}
		r.Block.AddTransaction(ledger.Transaction{Signature: sig, Success: ledger.Some(slot%2 == 0)})
		f.ledger.blocks = append(f.ledger.blocks, r.Block)
	}
	for _, a := range accounts {
		before := f.ledger.accounts[a.Pubkey]
		u := ledger.Update{Account: a, DataBefore: ledger.DataBefore(&before, &a)}
		if before.Exists() && before.Owner != a.Owner {
			u.OwnerBefore = ledger.Some(before.Owner)
		}
		if before.Token != nil && a.Token == nil {
			u.WalletBefore = ledger.Some(before.Token.Owner)
		}
		r.Updates = append(r.Updates, u)
		f.ledger.put(a)
	}
	f.seq = r.LastSeq()
	tip.Seq = f.seq
	f.ledger.head.Store(&head)
	f.hub.Publish(&ledger.Publication{Head: &head, Records: []*ledger.Record{r}})
}

// finalize tells that all is final.
func (f *feed) finalize() { f.reach(ledger.Finalized, f.ledger.head.Load().Tips[ledger.Processed]) }

// reach tells that a block has reached a level.
func (f *feed) reach(level ledger.Commitment, tip ledger.Tip) {
	head := *f.ledger.head.Load()
	for at := ledger.Confirmed; at <= level; at++ {
		if head.Tips[at].Slot < tip.Slot {
			head.Tips[at] = tip
		}
	}
	f.ledger.head.Store(&head)
	f.hub.Publish(&ledger.Publication{Head: &head})
}

// serveHub serves a door that has a hub, which ends with the test.
func serveHub(t *testing.T) (*feed, *rig) {
	return serveHubWith(t, newFakeLedger(), stream.Config{}, func(c *Config, _ *httpd.Config) { c.IndexMints = true })
}

func serveHubWith(t *testing.T, l *fakeLedger, config stream.Config, change func(*Config, *httpd.Config)) (*feed, *rig) {
	config.Ledger = l
	f := &feed{ledger: l, hub: stream.New(config), version: l.head.Load().Tips[ledger.Processed].Version}
	f.hub.Publish(&ledger.Publication{Head: l.head.Load()})
	r := serve(t, l, func(c *Config, h *httpd.Config) {
		c.Hub = f.hub
		change(c, h)
	})
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

// subscribed is the answer that a subscription has a number.
func subscribed(number int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","result":%d,"id":1}`, number)
}

const (
	badID   = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid subscription id."},"id":1}`
	tooMany = `{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error: Too many subscriptions. Subscription rejected."},"id":1}`
)

// One client has some filtered subscriptions on all its connections together, because each is looked at for each update of its program.
func TestFilteredSubscriptionsAreFew(t *testing.T) {
	_, r := serveHub(t)
	clients := []client{r.dial(), r.dial(), r.dial(), r.dial()}
	filtered := func(i int) string {
		return fmt.Sprintf(`["<13>",{"filters":[{"memcmp":{"offset":%d,"bytes":"2m"}}]}]`, i)
	}
	for i := range 256 {
		ledgertest.Equal(t, clients[i%4].ask("programSubscribe", filtered(i)), subscribed(i+1), "one of those that it may have")
	}
	for _, c := range clients {
		ledgertest.Equal(t, c.ask("programSubscribe", filtered(256)), tooMany, "one more")
	}
	ledgertest.Equal(t, clients[0].ask("programSubscribe", filtered(0)), subscribed(1), "one that it has")
	ledgertest.Equal(t, clients[0].ask("programSubscribe", `["<13>"]`), subscribed(257), "one without filters")
	clients[0].ask("programUnsubscribe", `[1]`)
	ledgertest.Equal(t, clients[1].ask("programSubscribe", filtered(256)), subscribed(258), "one in place of another")
}

// A client whose subscriptions take more memory than there is for them is closed with 1013, as one of the other door is that names too much.
func TestSubscriptionsTakeTheMemoryOfTheirNames(t *testing.T) {
	_, r := serveHubWith(t, newFakeLedger(), stream.Config{Memory: budget.New(512 << 10)}, func(*Config, *httpd.Config) {})
	c := r.dial()
	long := strings.Repeat("1", 128)
	for i := range 100 {
		filters := strings.Repeat(fmt.Sprintf(`{"memcmp":{"offset":%d,"bytes":%q}},`, i, long), 3) + fmt.Sprintf(`{"memcmp":{"offset":%d,"bytes":%q}}`, i+1000, long)
		must(t, c.WriteMessage(websocket.TextMessage, []byte(names().Replace(`{"jsonrpc":"2.0","id":1,"method":"programSubscribe","params":["<16>",{"filters":[`+filters+`]}]}`))))
		must(t, c.SetReadDeadline(time.Now().Add(patience)))
		_, text, err := c.ReadMessage()
		if websocket.IsCloseError(err, websocket.CloseTryAgainLater) {
			return
		}
		if ledgertest.Equal(t, string(text), subscribed(i+1), "the answer before %v", err); err != nil {
			break
		}
	}
	t.Error("all subscriptions had room")
}
