package rpc

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/httpd"
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

// finalize tells that all is final.
func (f *feed) finalize() { f.reach(ledger.Finalized, f.ledger.Newest.Load().Tips[ledger.Processed]) }

// reach tells that a block has reached a level.
func (f *feed) reach(level ledger.Commitment, tip ledger.Tip) {
	head := *f.ledger.Newest.Load()
	for at := ledger.Confirmed; at <= level; at++ {
		if head.Tips[at].Slot < tip.Slot {
			head.Tips[at] = tip
		}
	}
	f.ledger.Newest.Store(&head)
	f.hub.Publish(&ledger.Publication{Head: &head})
}

// serveHub serves a door that has a hub, which ends with the test.
func serveHub(t *testing.T) (*feed, *rig) {
	return serveHubWith(t, newFakeLedger(), stream.Config{}, func(c *Config, _ *httpd.Config) { c.IndexMints = true })
}

func serveHubWith(t *testing.T, l *fakeLedger, config stream.Config, change func(*Config, *httpd.Config)) (*feed, *rig) {
	config.Ledger = l
	f := &feed{ledger: l, hub: stream.New(config), version: l.Newest.Load().Tips[ledger.Processed].Version}
	f.hub.Publish(&ledger.Publication{Head: l.Newest.Load()})
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
	tooMany = `{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal Error: Subscription refused. Node subscription limit reached"},"id":1}`
)
