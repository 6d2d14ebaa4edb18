package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"ledgerd/bench/feed"
	"ledgerd/bench/load"
	"ledgerd/bench/peer"
	"ledgerd/engine/ledger"
)

func keyOf(index int) string { return feed.Key(index).String() }

// getAccount returns the request for an account, as a common client writes it.
func (g *rig) getAccount(index int) []byte {
	return load.Get(g.address().String(), "/api/account/"+keyOf(index), nil)
}

// verifyAccount says what is wrong with a response: it is not what was true at the slot that it says it is of.
func (g *rig) verifyAccount(index int, response *fasthttp.Response) error {
	slot, err := strconv.ParseUint(string(response.Header.Peek("X-Ledger-Slot")), 10, 64)
	if err != nil {
		return fmt.Errorf("account %d: the response names no slot: %.500q", index, &response.Header)
	}
	return same(response.Body(), recordText(peer.RecordOf(g.feed.Config().Account(index, g.updated(index, ledger.Slot(slot))))))
}

// verifyPeer returns what says what is wrong with a peer's response: it is not the account that was asked for, where the peer
// looks it up, else not the one answer.
func verifyPeer(answer string, looksUp bool) func(index int, response *fasthttp.Response) error {
	return func(index int, response *fasthttp.Response) error {
		want := answer
		if looksUp {
			want = recordText(peer.Record(index))
		}
		return same(bytes.TrimSuffix(response.Body(), []byte("\r\n")), want)
	}
}

func same(body []byte, want string) error {
	if string(body) != want {
		return fmt.Errorf("%.500q instead of %.500q", body, want)
	}
	return nil
}

// updated returns the slot that had updated the account of an index last at a slot.
func (g *rig) updated(index int, at ledger.Slot) ledger.Slot {
	for s := at; s > feed.FirstSlot; s-- {
		if g.feed.Config().Has(s, index) {
			return s
		}
	}
	return feed.FirstSlot - 1
}

func recordText(r peer.AccountRecord) string {
	text, _ := json.Marshal(r) // it has text and numbers only
	return string(text)
}

// address is where the server listens.
func (g *rig) address() netip.AddrPort {
	host, _, _ := strings.Cut(strings.TrimPrefix(g.URL(), "http://"), "/")
	return netip.MustParseAddrPort(host)
}

// askFor returns an answer of ledgerd's for those that are to give the same: without what every server writes in its own way.
func askFor(ctx context.Context, method, url, body string) peer.Answer {
	response := got(http.DefaultClient.Do(got(http.NewRequestWithContext(ctx, method, url, strings.NewReader(body)))))
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		check(fmt.Errorf("%s %s is answered %s", method, url, response.Status))
	}
	for _, name := range []string{"Date", "Content-Length", "Connection"} {
		response.Header.Del(name)
	}
	return peer.Answer{Head: response.Header, Body: string(got(io.ReadAll(response.Body)))}
}
