package rpc

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd"
	"ledgerd/httpd/stream"
)

// patience bounds how long the test waits for what must come.
const patience = time.Minute

// feed publishes blocks to a hub.
type feed struct {
	ledger *fakeLedger
	hub    *stream.Hub
	seq    ledger.Seq
}

// publish tells of a block, or with a tip before of the way back to one, that changed accounts.
func (f *feed) publish(kind ledger.RecordKind, slot, from ledger.Slot, accounts ...ledger.Account) {
	head := *f.ledger.head
	tip := &head.Tips[ledger.Processed]
	tip.Version, tip.Slot = tip.Version+1, slot
	r := &ledger.Record{Version: tip.Version, Kind: kind, Slot: slot, FromSlot: from, FirstSeq: f.seq + 1}
	for _, a := range accounts {
		u := ledger.Update{Account: a}
		if before := f.ledger.accounts[a.Pubkey]; before.Exists() && before.Owner != a.Owner {
			u.OwnerBefore = ledger.Some(before.Owner)
		}
		r.Updates = append(r.Updates, u)
		f.ledger.put(a)
	}
	f.seq = r.LastSeq()
	tip.Seq = f.seq
	f.ledger.head = &head
	f.hub.Publish(&ledger.Publication{Head: &head, Records: []*ledger.Record{r}})
}

// finalize tells that all is final.
func (f *feed) finalize() {
	head := *f.ledger.head
	head.Tips[ledger.Finalized], head.Tips[ledger.Confirmed] = head.Tips[ledger.Processed], head.Tips[ledger.Processed]
	f.ledger.head = &head
	f.hub.Publish(&ledger.Publication{Head: &head})
}

// TestPubsub holds what two clients that ask for the same are told against testdata/pubsub.txt.
func TestPubsub(t *testing.T) {
	const file = "testdata/pubsub.txt"
	l := newFakeLedger()
	f := &feed{ledger: l, hub: stream.New(stream.Config{Ledger: l})}
	f.hub.Publish(&ledger.Publication{Head: l.head})
	r := serve(t, l, func(c *Config, h *httpd.Config) { c.Hub = f.hub })
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		must(t, f.hub.Shutdown(ctx))
	})
	clients := []*websocket.Conn{r.dial(), r.dial()}
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
		ask("programSubscribe", `["<13>",{"filters":1}]`)
		ask("programSubscribe", `["<10>",{"filters":[{"dataSize":5}]}]`) // the data of whose accounts is not kept
		ask("getSlot", `[]`)
		ask("logsSubscribe", `["all"]`)
		ask("slotUnsubscribe", `[99]`)
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
	step("another, in which an account is closed", 4, func() {
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
	for _, c := range clients {
		must(t, c.Close())
	}
	got := written.String()
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o644))
	}
	ledgertest.Equal(t, strings.Split(got, "\n"), strings.Split(string(readFile(t, file)), "\n"), "%s", file)
}

// dial opens a WebSocket.
func (r *rig) dial() *websocket.Conn {
	r.Helper()
	dialer := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return r.connect() }}
	c, _, err := dialer.Dial("ws://ledger/", nil)
	must(r, err)
	return c
}

// An account that is told of and cannot be shown ends the connection with the reason: no update is left out in silence.
func TestWhatCannotBeToldEndsTheConnection(t *testing.T) {
	l := newFakeLedger()
	f := &feed{ledger: l, hub: stream.New(stream.Config{Ledger: l})}
	f.hub.Publish(&ledger.Publication{Head: l.head})
	r := serve(t, l, func(c *Config, h *httpd.Config) { c.Hub = f.hub })
	c := r.dial()
	must(t, c.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"accountSubscribe","params":["`+wallet.String()+`",{"commitment":"processed"}]}`)))
	_, _, err := c.ReadMessage()
	must(t, err)
	f.publish(ledger.BlockRecord, 31, 0, ledger.Account{Pubkey: wallet, Lamports: 5, Known: ledger.FieldsAll})
	_, _, err = c.ReadMessage()
	if end, ok := err.(*websocket.CloseError); !ok || end.Code != websocket.CloseInternalServerErr || !strings.Contains(end.Text, "is not kept here") {
		t.Errorf("ended with %v", err)
	}
	_ = c.Close()
	must(t, f.hub.Shutdown(t.Context()))
}
