package httpd

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/console"
)

// putMints adds accounts that are mints: with a supply, without one, and one nothing is known of.
func (h *harness) putMints() {
	for i, key := range []ledger.Pubkey{mintA, mintB, unminted} {
		h.ledger.put(ledger.Account{Pubkey: key, Owner: []ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program, ledger.TokenProgram}[i], Lamports: 1, Known: ledger.FieldsShown})
	}
	h.ledger.mints[mintA] = &ledger.Mint{Decimals: 6, Supply: ledger.Some(uint64(1<<64 - 1))}
}

// putData adds accounts of a program with data, without any, and of which it is not known.
func (h *harness) putData() {
	for i, data := range [][]byte{[]byte("one market of two mints"), []byte("another market"), nil} {
		h.ledger.put(ledger.Account{Pubkey: testKey(byte(60 + i)), Owner: owner, Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(data)})
	}
	token := h.ledger.accounts[testKey(30)]
	token.Known, token.Data = token.Known|ledger.FieldData, ledger.NewData(make([]byte, 165))
	h.ledger.put(token)
}

// TestRoutesAndDocumentNameTheSamePaths walks the table of routes against the document, and back.
func TestRoutesAndDocumentNameTheSamePaths(t *testing.T) {
	h := serve(t, nil)
	ledgertest.Equal(t, h.get("/api/openapi.json").body, string(openAPIDocument), "openapi.json")
	undescribed := document.Paths.Map()
	for _, row := range newRoutes()[firstPage+console.Kinds:] {
		item := undescribed[row.path]
		if item == nil || item.Get == nil {
			t.Errorf("the document does not describe GET %s", row.path)
			continue
		}
		delete(undescribed, row.path)
		named := make(map[string]bool)
		for _, p := range parameters {
			if row.params&p.is == 0 {
				continue
			}
			if named[p.name] = true; item.Get.Parameters.GetByInAndName("query", p.name) == nil {
				t.Errorf("the document does not describe %s of %s", p.name, row.path)
			}
		}
		for _, described := range item.Get.Parameters {
			if p := described.Value; p.In == "query" && !named[p.Name] && row.label != "ws_accounts" { // whose query the stream reads
				t.Errorf("the document describes %s of %s, which ignores it", p.Name, row.path)
			}
		}
	}
	for path := range undescribed {
		t.Errorf("the document describes %s, which is no route", path)
	}
}

// TestErrorsOfTheLedgerAreMapped checks every data route with every error there is.
func TestErrorsOfTheLedgerAreMapped(t *testing.T) {
	targets := []string{
		"/api/blocks/latest", "/api/blocks/28", "/api/transaction/" + testSignature(1).String(), "/api/transactions/recent",
		"/api/account/" + whole.String(), "/api/account/" + whole.String() + "/balance", "/api/account/" + wallet.String() + "/tokens",
		"/api/accounts/program/" + owner.String(), "/api/accounts?keys=" + whole.String(),
	}
	const unexpected = "an unexpected error occurred"
	const busy = "the account is not held here and the upstream node is busy: try again"
	busyFor := func(asked time.Duration) error { return &ledger.UpstreamError{Busy: true, RetryAfter: asked} }
	for _, tt := range []struct {
		err     error
		status  int
		retry   string
		details string
	}{
		{ledger.ErrUnavailable, 503, "1", "overloaded"},
		{fmt.Errorf("shard 2: %w", ledger.ErrUnavailable), 503, "1", "overloaded"},
		{ledger.ErrMinSlot, 503, "1", "min_slot not reached"},
		{ledger.ErrRecovering, 503, "1", "recovering"},
		{ledger.ErrNoBlock, 503, "1", "no block has come from the source yet"},
		{ledger.ErrFetching, 503, "1", "the account is being fetched from the upstream node, or is not at this commitment yet: try again"},
		{ledger.ErrFetchFull, 503, "1", "the account is not held here, and this node fetches no more: it holds as many as it may"},
		{ledger.ErrFetchBusy, 503, "1", "too many accounts are being fetched from the upstream node: try again"},
		{&ledger.UpstreamError{Err: errors.New("dial http://u:secret@10.0.0.1")}, 503, "1", "the account is not held here and the upstream node cannot be asked: try again"},
		{busyFor(0), 503, "1", busy},
		{busyFor(time.Millisecond), 503, "1", busy},
		{busyFor(2500 * time.Millisecond), 503, "3", busy},
		{busyFor(17 * time.Second), 503, "17", busy},
		{busyFor(24 * time.Hour), 503, "60", busy},
		{busyFor(-time.Hour), 503, "1", busy},
		{fmt.Errorf("disk on fire at /secret/path"), 500, "", unexpected},
		{ledger.ErrCorrupt, 500, "", unexpected},
	} {
		h := serve(t, nil)
		h.ledger.err = tt.err
		for _, target := range targets {
			r := h.get(target)
			if want := errorBody(tt.status, tt.details); r.status != tt.status || r.body != want || r.header.Get("Retry-After") != tt.retry {
				t.Errorf("%s with %v: %d %s, Retry-After %q, want %d %s, %q", target, tt.err, r.status, r.body, r.header.Get("Retry-After"), tt.status, want, tt.retry)
			}
		}
	}
}

// What a query means FuzzQuery checks, and the golden answers have the other parameters.
func TestParametersReachTheLedgerAsValues(t *testing.T) {
	h := serve(t, nil)
	ledgertest.Equal(t, h.get("/api/account/"+whole.String()+"?commitment=confirmed&min_slot=28&wait_ms=2000&_limit=0&%5Fbefore=x&_=").status, 200, "the status")
	ledgertest.Equal(t, h.ledger.query, ledger.Query{Commitment: ledger.Confirmed, MinSlot: 28, Wait: 2 * time.Second}, "the query")
	for _, target := range []string{"/api/account/{whole}?include=data", "/api/account/{whole}?include=token", "/api/accounts?keys={whole}&include=token",
		"/api/accounts/program/{owner}?include=token", "/api/account/{wallet}/tokens?limit=1000"} { // what is asked last is so at the version and by the deadline of the first
		h.ledger.asked.Store(0)
		h.get(expand(t, target) + "&commitment=finalized")
		want := ledger.Query{Commitment: ledger.Finalized, Head: h.ledger.head, Deadline: now.Add(time.Second)}
		ledgertest.Equal(t, h.ledger.query, want, "%s: the last query", target)
	}
	h.get("/api/transactions/recent?limit=1000&before=" + testSignature(1).String() + "&after=" + testSignature(2).String())
	want := ledger.TransactionRange{Before: ledger.Some(testSignature(1)), After: ledger.Some(testSignature(2)), Limit: 1000}
	ledgertest.Equal(t, h.ledger.scoped, want, "the range")
}

// A key that nobody has is answered, on every path of the document, as the document says.
func TestAnUnknownKeyIsAnsweredEverywhere(t *testing.T) {
	h := serve(t, func(c *Config) { c.Keys = apikey.NewRing(apikey.Tier{}, now) })
	for path := range document.Paths.Map() {
		if r := h.get("/api"+path, "Authorization: nobody's"); r.status != 401 || r.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: status %d, header %v", path, r.status, r.header)
		}
	}
	h = serve(t, func(c *Config) { c.Keys, c.PerMinute = apikey.NewRing(apikey.Tier{}, now), 5 })
	for left, sent := range []string{"Authorization: Bearer", "Authorization: Bearer\tx", "Authorization: x", "X-API-Key: x", "Sec-WebSocket-Protocol: ledgerd, key.x"} { // a file costs a request then
		if r := h.get("/console/uplot.min.css", sent); r.status != 401 || r.header.Get("X-RateLimit-Remaining") != strconv.Itoa(4-left) {
			t.Errorf("%q: status %d, header %v", sent, r.status, r.header)
		}
	}
}

// A page of a list ends where its data is long, but for its first account, and says where the next one begins.
func TestPagesEndWhereTheirDataIsLong(t *testing.T) {
	h := serve(t, nil)
	for i, size := range []int{3 * pageData / 4, 3 * pageData / 8, 3 * pageData / 8, 1} {
		h.ledger.put(ledger.Account{Pubkey: testKey(byte(60 + i)), Owner: testKey(60), Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, size))})
	}
	for include, want := range map[string][]int{"token": {4}, "data": {1, 2, 1}, "data&data_slice=3,5": {4}} {
		var got []int
		for cursor := ""; len(got) < 9; {
			r := h.ask("", "GET", "/api/accounts/program/"+testKey(60).String()+"?include="+include+cursor) // the document's patterns take long for megabytes
			var page struct {
				Accounts []struct{}
				Next     *string `json:"next_cursor"`
			}
			ledgertest.Must(t, json.Unmarshal([]byte(r.body), &page))
			if got = append(got, len(page.Accounts)); page.Next == nil {
				break
			}
			cursor = "&cursor=" + *page.Next
		}
		ledgertest.Equal(t, got, want, "the accounts of each page with include=%s", include)
	}
}
