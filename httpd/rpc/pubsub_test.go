package rpc

import (
	"context"
	"fmt"
	"net"
	"os"
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
func serveHub(t *testing.T) (*feed, *rig) { return serveHubWith(t, stream.Config{}) }

func serveHubWith(t *testing.T, config stream.Config) (*feed, *rig) {
	l := newFakeLedger()
	config.Ledger = l
	f := &feed{ledger: l, hub: stream.New(config), version: l.head.Load().Tips[ledger.Processed].Version}
	f.hub.Publish(&ledger.Publication{Head: l.head.Load()})
	r := serve(t, l, func(c *Config, h *httpd.Config) { c.Hub, c.IndexMints = f.hub, true })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must(t, f.hub.Shutdown(ctx))
	})
	return f, r
}

// TestPubsub holds what two clients that ask for the same are told against testdata/pubsub.txt.
func TestPubsub(t *testing.T) {
	const file = "testdata/pubsub.txt"
	f, r := serveHub(t)
	l := f.ledger
	clients := []client{r.dial(), r.dial()}
	replacer := names()
	var written strings.Builder
	// told notes what both clients are told next, which is the same.
	told := func(count int) {
		t.Helper()
		for range count {
			var first string
			for i, c := range clients {
				must(t, c.SetReadDeadline(time.Now().Add(patience)))
				_, text, err := c.ReadMessage()
				if err != nil {
					t.Fatalf("%v after\n%s", err, written.String())
				}
				if i == 0 {
					first = string(text)
				}
				ledgertest.Equal(t, string(text), first, "what another client is told")
			}
			fmt.Fprintf(&written, "< %s\n", first)
		}
	}
	ask := func(method, params string) {
		t.Helper()
		text := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
		fmt.Fprintf(&written, "> %s %s\n", method, params)
		for _, c := range clients {
			must(t, c.WriteMessage(websocket.TextMessage, []byte(replacer.Replace(text))))
		}
		told(1)
	}
	step := func(what string, count int, do func()) {
		t.Helper()
		fmt.Fprintf(&written, "\n== %s\n", what)
		do()
		told(count)
	}
	processed := `{"commitment":"processed","encoding":"base64"}`
	step("what is asked for", 0, func() {
		ask("accountSubscribe", `["<4>",`+processed+`]`)
		ask("accountSubscribe", `["<4>",`+processed+`]`)
		ask("accountSubscribe", `["<4>"]`)
		ask("accountSubscribe", `["<30>",{"encoding":"jsonParsed","commitment":"processed"}]`)
		ask("programSubscribe", `["<13>",{"commitment":"processed","encoding":"base64","filters":[{"memcmp":{"offset":0,"bytes":"2m"}}]}]`) // an f
		ask("programSubscribe", `["<13>",{"commitment":"processed","encoding":"base64","filters":[{"dataSize":5}]}]`)
		ask("slotSubscribe", `[]`)
		ask("rootSubscribe", `[]`)
	})
	step("what is refused", 0, func() {
		ask("accountSubscribe", `["<1>",`+processed+`]`) // whose data is not kept
		ask("accountSubscribe", `[7]`)
		ask("accountSubscribe", `["<4>",{"resumeFrom":5}]`)
		ask("accountSubscribe", `["<4>",{"resumeFrom":"5"}]`)
		ask("programSubscribe", `["<13>",{"filters":1}]`)
		ask("programSubscribe", `["<10>",{"filters":[{"dataSize":5}]}]`) // the data of whose accounts is not kept
		ask("getSlot", `[]`)
		ask("logsSubscribe", `["all"]`)
		ask("slotUnsubscribe", `[99]`)
		ask("signatureSubscribe", `["<4>"]`)
		ask("signatureSubscribe", `["<sig1>",{"enableReceivedNotification":1}]`)
		ask("signatureSubscribe", `["<sig1>",{"minContextSlot":21}]`)
	})
	account := func(n byte, lamports ledger.Lamports, owner ledger.Pubkey, data string) ledger.Account {
		return ledger.Account{Pubkey: testKey(n), Lamports: lamports, Owner: owner, Known: ledger.FieldsAll&^ledger.FieldMint | ledger.FieldData, Data: ledger.NewData([]byte(data))}
	}
	token := l.accounts[testKey(30)]
	facts := *token.Token
	facts.Amount, token.Token = 7, &facts
	step("a block", 5, func() {
		f.publish(ledger.BlockRecord, 31, 0, account(4, 5, ledger.SystemProgram, ""), account(14, 6, testKey(13), "fives"), token)
	})
	step("it is undone", 2, func() {
		f.publish(ledger.RollbackRecord, 30, 31, account(4, 9, ledger.SystemProgram, ""), account(14, 8, testKey(13), "other"))
	})
	step("another, in which an account is closed, which one filter took", 3, func() {
		f.publish(ledger.BlockRecord, 32, 0, account(4, 10, ledger.SystemProgram, ""), ledger.Account{Pubkey: testKey(14)})
	})
	step("all is final", 2, f.finalize)
	step("taken back", 0, func() {
		ask("slotUnsubscribe", `[6]`)
		ask("slotUnsubscribe", `[6]`)
		ask("accountUnsubscribe", `[1]`)
	})
	step("a block that only the rest is told of", 0, func() { f.publish(ledger.BlockRecord, 33, 0, account(4, 11, ledger.SystemProgram, "")) })
	step("it is final", 2, f.finalize)
	got := written.String()
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	ledgertest.Equal(t, strings.Split(got, "\n"), strings.Split(string(readFile(t, file)), "\n"), "%s", file)
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
	badID     = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid subscription id."},"id":1}`
	tooMany   = `{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error: Too many subscriptions. Subscription rejected."},"id":1}`
	wantsNone = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params: there are at most 0 parameters"},"id":1}`
	wantsTwo  = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params: there are at most 2 parameters"},"id":1}`
)

// A subscription is its parameters and not their spelling, is taken back as what it is, and takes no more than its parameters.
func TestSubscriptionsAreOnePerMeaning(t *testing.T) {
	_, r := serveHub(t)
	c := r.dial()
	for _, one := range []struct{ method, params, want string }{
		{"programSubscribe", `["<13>",{"filters":[{"memcmp":{"offset":0,"bytes":"2m"}},{"dataSize":5}]}]`, subscribed(1)},
		{"programSubscribe", `["<13>",{"x":"kept?","filters":[{"dataSize":5,"y":1},{"memcmp":{"bytes":"Zg==","encoding":"base64","offset":0,"z":2}}],"commitment":"max"}]`, subscribed(1)},
		{"programSubscribe", `["<13>",{"filters":[{"memcmp":{"offset":0,"bytes":[102]}},{"memcmp":{"offset":0,"bytes":"2m"}},{"dataSize":5}]}]`, subscribed(1)},
		{"programSubscribe", `["<13>",{"filters":[{"memcmp":{"offset":1,"bytes":"2m"}},{"dataSize":5}]}]`, subscribed(2)},
		{"programSubscribe", `["<13>",{"filters":[{"dataSize":5},{"dataSize":6}]}]`, subscribed(3)},
		{"programSubscribe", `["<13>",{"filters":[{"dataSize":6},{"dataSize":5}]}]`, subscribed(3)},
		{"programSubscribe", `["<13>"]`, subscribed(4)},
		{"programSubscribe", `["<13>",{"filters":[]}]`, subscribed(4)},
		{"programSubscribe", `["<13>",{"filters":["tokenAccountState"]}]`, subscribed(5)},
		{"programSubscribe", `["<13>",{"filters":[{"tokenAccountState":true}]}]`, subscribed(5)},
		{"programSubscribe", `["<13>",{"encoding":"base58"}]`, subscribed(6)},
		{"slotSubscribe", `[]`, subscribed(7)},
		{"slotSubscribe", `[1]`, wantsNone},
		{"rootSubscribe", `[null]`, wantsNone},
		{"accountSubscribe", `["<4>",{},1]`, wantsTwo},
		{"programSubscribe", `["<13>",{},1]`, wantsTwo},
		{"accountUnsubscribe", `[7]`, badID},
		{"rootUnsubscribe", `[7]`, badID},
		{"slotUnsubscribe", `[4]`, badID},
		{"slotUnsubscribe", `[7]`, `{"jsonrpc":"2.0","result":true,"id":1}`},
		{"programUnsubscribe", `[4]`, `{"jsonrpc":"2.0","result":true,"id":1}`},
		{"programSubscribe", `["<13>"]`, subscribed(8)},
	} {
		ledgertest.Equal(t, c.ask(one.method, one.params), one.want, "%s %s", one.method, one.params)
	}
}

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
	_, r := serveHubWith(t, stream.Config{Memory: budget.New(512 << 10)})
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

// A closed account is told to those whose filters took it before, and to no others; one that goes to another program to those of that one.
func TestClosingIsToldToWhomTheAccountWasTold(t *testing.T) {
	f, r := serveHub(t)
	c := r.dial()
	took := make(map[int]bool) // by the number of the subscription
	for i, one := range []struct {
		program, filters string
		takes            bool
	}{
		{"<13>", `[]`, true},
		{"<13>", `[{"dataSize":3}]`, true},
		{"<13>", `[{"dataSize":0}]`, false},
		{"<13>", `[{"memcmp":{"offset":2,"bytes":[1]}}]`, true},
		{"<13>", `[{"memcmp":{"offset":1,"bytes":[1]}}]`, false},
		{"<13>", `[{"dataSize":3},{"dataSize":4}]`, false},
		{"<13>", `["tokenAccountState"]`, false},
		{"<token>", `["tokenAccountState"]`, true},
		{"<16>", `[]`, false},
	} {
		config := `{"commitment":"processed","encoding":"jsonParsed","filters":` + one.filters + `}`
		ledgertest.Equal(t, c.ask("programSubscribe", `["`+one.program+`",`+config+`]`), subscribed(i+1), one.filters)
		if one.takes {
			took[i+1] = true
		}
	}
	c.ask("slotSubscribe", `[]`) // which is told last
	f.publish(ledger.BlockRecord, 31, 0, ledger.Account{Pubkey: testKey(14)}, ledger.Account{Pubkey: testKey(31)})
	told := make(map[int]bool)
	for text := c.next(); !strings.Contains(text, "slotNotification"); text = c.next() {
		var number int
		_, err := fmt.Sscanf(text[strings.LastIndex(text, ":")+1:], "%d", &number)
		must(t, err)
		told[number] = true
		if !strings.Contains(text, `"lamports":0`) {
			t.Errorf("%s was told", text)
		}
	}
	ledgertest.Equal(t, told, took, "the subscriptions that were told")
	moved := f.ledger.accounts[testKey(12)]
	moved.Owner = testKey(16)
	f.publish(ledger.BlockRecord, 32, 0, moved)
	for _, want := range []string{`"subscription":9}`, "slotNotification"} {
		if text := c.next(); !strings.Contains(text, want) {
			t.Errorf("of an account that goes to another program %s was told, want %s", text, want)
		}
	}
}

// What is told of an account whose state cannot be shown as asked is in base64, or says why not. Nothing is left out in silence, and other
// subscriptions go on.
func TestWhatCannotBeShownAsAskedIsTold(t *testing.T) {
	f, r := serveHub(t)
	c := r.dial()
	long := ledger.Account{Pubkey: testKey(15), Lamports: 5, Owner: testKey(16), Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, 129))}
	hidden := ledger.Account{Pubkey: testKey(17), Lamports: 5, Owner: testKey(16), Known: ledger.FieldsAll &^ ledger.FieldData}
	for i, encoding := range []string{"base58", "binary"} {
		ledgertest.Equal(t, c.ask("programSubscribe", `["<16>",{"commitment":"processed","encoding":"`+encoding+`"}]`), subscribed(i+1), "of a program without accounts")
	}
	ledgertest.Equal(t, c.ask("programSubscribe", `["<13>",{"encoding":"base58","filters":[{"dataSize":3}]}]`), subscribed(3), "beside a long account")
	f.publish(ledger.BlockRecord, 31, 0, long, hidden)
	for i := range 4 {
		text, want := c.next(), `,"data":["AAAA`
		if i > 1 {
			want = `or a dataSlice of length 0","data":{"pubkey":"` + hidden.Pubkey.String() + `","slot":31,"seq":2}},"subscription":`
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	ledgertest.Equal(t, c.ask("slotSubscribe", `[]`), subscribed(4), "what else is asked for")
}
