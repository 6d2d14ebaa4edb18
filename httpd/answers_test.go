package httpd

import (
	"encoding/json"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/console"
)

// putMints adds accounts that are mints: with a supply, without one, and one nothing is known of.
func (l *fakeLedger) putMints() {
	for i, key := range []ledger.Pubkey{mintA, mintB, unminted} {
		l.Put(ledger.Account{Pubkey: key, Owner: []ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program, ledger.TokenProgram}[i], Lamports: 1, Known: ledger.FieldsShown})
	}
	l.Facts[mintA] = &ledger.Mint{Decimals: 6, Supply: ledger.Some(uint64(1<<64 - 1))}
}

// putData adds accounts of a program with data, without any, and of which it is not known.
func (l *fakeLedger) putData() {
	for i, data := range [][]byte{[]byte("one market of two mints"), []byte("another market"), nil} {
		l.Put(ledger.Account{Pubkey: testKey(byte(60 + i)), Owner: owner, Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(data)})
	}
	token := l.Held[testKey(30)]
	token.Known, token.Data = token.Known|ledger.FieldData, ledger.NewData(make([]byte, 165))
	l.Put(token)
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
		for _, p := range row.params {
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

// What a query means FuzzQuery checks, and the golden answers have the other parameters.
func TestParametersReachTheLedgerAsValues(t *testing.T) {
	h := serve(t, nil)
	ledgertest.Equal(t, h.get("/api/account/"+whole.String()+"?commitment=confirmed&min_slot=28&wait_ms=2000&_limit=0&%5Fbefore=x&_=").status, 200, "the status")
	ledgertest.Equal(t, h.ledger.query, ledger.Query{Commitment: ledger.Confirmed, MinSlot: 28, Wait: 2 * time.Second}, "the query")
	for _, target := range []string{"/api/account/{whole}?include=data", "/api/account/{whole}?include=token", "/api/accounts?keys={token}&include=token",
		"/api/accounts/program/{TokenProgram}?include=token", "/api/account/{wallet}/tokens?limit=1000"} { // what is asked last is so at the version and by the deadline of the first
		h.ledger.asked.Store(0)
		h.get(expand(t, target) + "&commitment=finalized")
		want := ledger.Query{Commitment: ledger.Finalized, Head: h.ledger.Head(), Deadline: now.Add(time.Second)}
		ledgertest.Equal(t, h.ledger.query, want, "%s: the last query", target)
	}
	h.get("/api/transactions/recent?limit=1000&before=" + testSignature(1).String() + "&after=" + testSignature(2).String())
	want := ledger.TransactionRange{Before: ledger.Some(testSignature(1)), After: ledger.Some(testSignature(2)), Limit: 1000}
	ledgertest.Equal(t, h.ledger.scoped, want, "the range")
}

// Holders are looked through at one version, by one deadline after the first page.
func TestHoldersAreOfOneVersion(t *testing.T) {
	h := serve(t, func(c *Config) { scenes["holders in pages"](c, c.Ledger.(*fakeLedger), "1") })
	var asked []ledger.Query
	ask := h.ledger.Ask
	h.ledger.Ask = func(q ledger.Query) (ledger.View, error) {
		asked = append(asked, q)
		return ask(q)
	}
	h.get("/api/account/" + mintA.String() + "/holders?commitment=confirmed&min_slot=28")
	for i, q := range asked {
		want := ledger.Query{Commitment: ledger.Confirmed, TokensOf: ledger.OfMint, MinSlot: 28}
		if i > 0 {
			want.Head, want.Deadline, want.MinSlot = h.ledger.Head(), now.Add(ListTime), 0
		}
		if i == 4 {
			want.TokensOf = ledger.OfWallet // of the mint's facts
		}
		ledgertest.Equal(t, q, want, "query %d", i)
	}
	ledgertest.Equal(t, len(asked), 5, "queries")
}

// Each tenth page of the accounts that one answer looks through is a request more.
func TestLongListsCountAsSeveralRequests(t *testing.T) {
	for most, status := range map[int]int{0: 200, 3: 200, 2: 429} {
		h := serve(t, func(c *Config) {
			c.PerMinute = most
			scenes["holders in pages"](c, c.Ledger.(*fakeLedger), "1")
		})
		for i := range 25 - 4 {
			a := h.ledger.Held[testKey(70)]
			a.Pubkey = testKey(byte(80 + i))
			h.ledger.Put(a)
		}
		r := h.get("/api/account/" + mintA.String() + "/holders")
		ledgertest.Equal(t, r.status, status, "with a limit of %d", most)
		if most > 0 {
			ledgertest.Equal(t, r.header.Get("X-RateLimit-Remaining"), "0", "what remains of %d", most)
		}
	}
}

// A page of a list ends where its data is long, but for its first account, and says where the next one begins.
func TestPagesEndWhereTheirDataIsLong(t *testing.T) {
	h := serve(t, nil)
	for i, size := range []int{3 * pageData / 4, 3 * pageData / 8, 3 * pageData / 8, 1} {
		h.ledger.Put(ledger.Account{Pubkey: testKey(byte(60 + i)), Owner: testKey(60), Lamports: 1, Known: ledger.FieldsAll | ledger.FieldData, Data: ledger.NewData(make([]byte, size))})
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
