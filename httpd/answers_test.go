package httpd

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

// TestBodiesAreGolden holds every body, byte for byte, against a file under review.
func TestBodiesAreGolden(t *testing.T) {
	h := serve(t, nil)
	tests := map[string]string{
		"health":              "/api/health",
		"status":              "/api/status",
		"blocks_latest":       "/api/blocks/latest",
		"blocks_finalized":    "/api/blocks/latest?commitment=finalized",
		"block":               "/api/blocks/28",
		"block_bare":          "/api/blocks/20",
		"block_signatures":    "/api/blocks/28?include=signatures",
		"block_transactions":  "/api/blocks/28?include=transactions",
		"block_bare_included": "/api/blocks/20?include=transactions",
		"transaction":         "/api/transaction/" + testSignature(1).String(),
		"transaction_failed":  "/api/transaction/" + testSignature(2).String(),
		"transaction_bare":    "/api/transaction/" + testSignature(100).String(),
		"recent":              "/api/transactions/recent?limit=2",
		"recent_end":          "/api/transactions/recent?before=" + testSignature(2).String(),
		"account":             "/api/account/" + whole.String(),
		"account_partial":     "/api/account/" + part.String(),
		"balance":             "/api/account/" + whole.String() + "/balance",
		"balance_finalized":   "/api/account/" + part.String() + "/balance?commitment=finalized",
		"tokens":              "/api/account/" + wallet.String() + "/tokens",
		"tokens_page":         "/api/account/" + wallet.String() + "/tokens?limit=1",
		"tokens_none":         "/api/account/" + whole.String() + "/tokens",
		"program":             "/api/accounts/program/" + ledger.TokenProgram.String(),
		"program_page":        "/api/accounts/program/" + ledger.TokenProgram.String() + "?limit=1",
		"accounts":            "/api/accounts?keys=" + joinKeys(part, missing, closed, whole, part),
	}
	withMints := serve(t, nil)
	withMints.putMints()
	withFacts := map[string]string{
		"account_token":  "/api/account/" + testKey(30).String() + "?include=token",
		"account_mint":   "/api/account/" + mintA.String() + "?include=token",
		"accounts_token": "/api/accounts?include=token&keys=" + joinKeys(testKey(30), testKey(31), testKey(32), testKey(33), mintA, mintB, unminted, part, whole, missing, closed),
		"program_token":  "/api/accounts/program/" + ledger.TokenProgram.String() + "?include=token&limit=3",
	}
	maps.Copy(tests, withFacts)
	for name, target := range tests {
		from := h
		if withFacts[name] != "" {
			from = withMints
		}
		r := from.get(target)
		if r.status != 200 || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d, Content-Type %q", target, r.status, r.header.Get("Content-Type"))
		}
		golden(t, name+".json", r.body)
	}
	if !*update {
		files, err := os.ReadDir("testdata")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name, ok := strings.CutSuffix(f.Name(), ".json"); ok && tests[name] == "" {
				t.Errorf("testdata/%s belongs to no test", f.Name())
			}
		}
	}
}

func joinKeys(keys ...ledger.Pubkey) string {
	text := make([]string, len(keys))
	for i, k := range keys {
		text[i] = k.String()
	}
	return strings.Join(text, ",")
}

// putMints adds accounts that are mints: with a supply, without one, and one nothing is known of.
func (h *harness) putMints() {
	for i, key := range []ledger.Pubkey{mintA, mintB, unminted} {
		h.ledger.put(ledger.Account{Pubkey: key, Owner: []ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program, ledger.TokenProgram}[i], Lamports: 1, Known: ledger.FieldsShown})
	}
	h.ledger.mints[mintA] = &ledger.Mint{Decimals: 6, Supply: ledger.Some(uint64(1<<64 - 1))}
}

// TestTagsCoverTokenFacts changes one fact at a time.
func TestTagsCoverTokenFacts(t *testing.T) {
	h := serve(t, nil)
	h.putMints()
	target := func(key ledger.Pubkey, include string) string { return "/api/account/" + key.String() + include }
	const facts = "?include=token"
	tag := func(key ledger.Pubkey, include string) string { return h.get(target(key, include)).header.Get("ETag") }
	holding, plain, mint := tag(testKey(30), facts), tag(testKey(30), ""), tag(mintA, facts)
	if r := h.get(target(testKey(30), facts), "If-None-Match: "+holding); r.status != 304 || holding == plain {
		t.Errorf("status %d with its tag, want 304; with facts %s, without %s", r.status, holding, plain)
	}
	a := h.ledger.accounts[testKey(30)]
	same := *a.Token
	a.Token = &same
	a.Token.Amount++
	h.ledger.put(a)
	if changed := tag(testKey(30), facts); changed == holding || tag(testKey(30), "") != plain {
		t.Errorf("the amount changed and the tag %s is still %s, or that of the account alone changed", holding, changed)
	} else {
		holding = changed
	}
	h.ledger.mints[mintA] = &ledger.Mint{Decimals: 5, Supply: ledger.Some(uint64(1<<64 - 1))}
	if tag(testKey(30), facts) == holding || tag(mintA, facts) == mint || tag(testKey(30), "") != plain {
		t.Error("the decimals changed and not the tags of both, or that of the account alone")
	}
	for _, include := range []string{"?include=tokens", "?include=mint", "?include=signatures", "?include=Token", "?include=token,mint"} {
		if r := h.get(target(whole, include)); r.status != 400 || r.body != errorBody(400, string(errToken)) {
			t.Errorf("%s: %d %s", include, r.status, r.body)
		}
	}
}

// TestRoutesAndDocumentNameTheSamePaths walks the table of routes against the document, and back.
func TestRoutesAndDocumentNameTheSamePaths(t *testing.T) {
	h := serve(t, nil)
	r := h.get("/api/openapi.json")
	if r.status != 200 || r.body != string(openAPIDocument) {
		t.Fatalf("openapi.json: status %d, %d bytes, want the embedded document", r.status, len(r.body))
	}
	undescribed := document.Paths.Map()
	for _, row := range newRoutes()[1:] {
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
			if p := described.Value; p.In == "query" && !named[p.Name] {
				t.Errorf("the document describes %s of %s, which ignores it", p.Name, row.path)
			}
		}
	}
	for path := range undescribed {
		t.Errorf("the document describes %s, which is no route", path)
	}
}

// TestAbsenceIsExplained checks every reason for a 404.
func TestAbsenceIsExplained(t *testing.T) {
	h := serve(t, nil)
	tests := map[string]string{
		"/api/account/" + missing.String():              "account not found",
		"/api/account/" + closed.String():               "account closed at slot 25",
		"/api/account/" + missing.String() + "/balance": "account not found",
		"/api/account/" + missing.String() + "/tokens":  "neither an account at this key nor anything it owns is known",
		"/api/accounts/program/" + missing.String():     "neither an account at this key nor anything it owns is known",
		"/api/transaction/" + testSignature(9).String(): "transaction not held: unknown, orphaned or pruned",
		"/api/blocks/31":                      "slot not yet produced at this commitment",
		"/api/blocks/30?commitment=finalized": "slot not yet produced at this commitment",
		"/api/blocks/18446744073709551615":    "slot not yet produced at this commitment",
		"/api/blocks/29":                      "slot skipped: no block was produced in it",
		"/api/blocks/15":                      "slot pruned: below the node's retention",
		"/api/blocks/0":                       "slot not indexed: this node never held it",
	}
	for target, details := range tests {
		r := h.get(target)
		if want := errorBody(404, details); r.status != 404 || r.body != want {
			t.Errorf("%s: %d %s, want 404 %s", target, r.status, r.body, want)
		}
		if got := r.header.Get("X-Ledger-Slot"); got != "30" {
			t.Errorf("%s: X-Ledger-Slot = %q, want the newest visible slot 30", target, got)
		}
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
	tests := []struct {
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
	}
	for _, tt := range tests {
		h := serve(t, nil)
		h.ledger.err = tt.err
		for _, target := range targets {
			r := h.get(target)
			if want := errorBody(tt.status, tt.details); r.status != tt.status || r.body != want || r.header.Get("Retry-After") != tt.retry {
				t.Errorf("%s with %v: %d %s, Retry-After %q, want %d %s, %q", target, tt.err, r.status, r.body, r.header.Get("Retry-After"), tt.status, want, tt.retry)
			}
		}
	}
	h := serve(t, nil)
	h.ledger.err = absent(ledger.NoBlockYet)
	if r := h.get("/api/blocks/latest"); r.status != 404 || r.body != errorBody(404, "no block yet") {
		t.Errorf("before the first block: %d %s", r.status, r.body)
	}
}

func TestBeforeTheFirstHeadOnlyTheNodeAnswers(t *testing.T) {
	h := serve(t, nil)
	h.ledger.head, h.ledger.err, h.ledger.status.Unhealthy = nil, ledger.ErrUnavailable, "recovering: 40% of the log replayed"
	for target, want := range map[string]int{
		"/api/status": 200, "/api/metrics": 200, "/api/openapi.json": 200,
		"/api/health": 503, "/api/blocks/latest": 503, "/api/account/" + whole.String(): 503,
	} {
		r := h.get(target)
		if r.status != want {
			t.Errorf("%s: status %d, want %d", target, r.status, want)
		}
		if r.header.Get("X-Ledger-Slot") != "" || r.header.Get("X-Ledger-Lag-Ms") != "" {
			t.Errorf("%s: names a slot before the first block", target)
		}
	}
	if r := h.get("/api/health"); r.body != errorBody(503, "recovering: 40% of the log replayed") || r.header.Get("Retry-After") == "" {
		t.Errorf("/api/health: %s, Retry-After %q", r.body, r.header.Get("Retry-After"))
	}
}

func TestBaseStateAloneNamesNoSlot(t *testing.T) {
	h := serve(t, nil)
	h.ledger.head.HasBlock = false
	r := h.get("/api/account/" + whole.String() + "/balance")
	if r.status != 200 || r.header.Get("X-Ledger-Slot") != "" {
		t.Errorf("status %d, X-Ledger-Slot %q, want 200 and none before the first block", r.status, r.header.Get("X-Ledger-Slot"))
	}
	h.ledger.head.Imported = true // what an import holds is of a slot
	if r := h.get("/api/account/" + whole.String() + "/balance"); r.status != 200 || r.header.Get("X-Ledger-Slot") == "" {
		t.Errorf("status %d, X-Ledger-Slot %q, want 200 and the slot of the import", r.status, r.header.Get("X-Ledger-Slot"))
	}
}

func TestParametersReachTheLedgerAsValues(t *testing.T) {
	h := serve(t, nil)
	if r := h.get("/api/account/" + whole.String() + "?commitment=confirmed&min_slot=28&wait_ms=2000&limit=0&before=x&%63ursor="); r.status != 200 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	if want := (ledger.Query{Commitment: ledger.Confirmed, MinSlot: 28, Wait: 2 * time.Second}); h.ledger.query != want {
		t.Errorf("query = %+v, want %+v", h.ledger.query, want)
	}
	h.get("/api/transactions/recent?limit=1000&before=" + testSignature(1).String() + "&after=" + testSignature(2).String())
	if want := (ledger.RecentRange{Before: ledger.Some(testSignature(1)), After: ledger.Some(testSignature(2)), Limit: 1000}); h.ledger.scoped != want {
		t.Errorf("range = %+v, want %+v", h.ledger.scoped, want)
	}
	h.get("/api/transactions/recent")
	if want := (ledger.RecentRange{Limit: 100}); h.ledger.scoped != want {
		t.Errorf("range = %+v, want %+v", h.ledger.scoped, want)
	}
	if h.get("/api/account/" + wallet.String() + "/tokens?limit=10000"); h.ledger.limit != 10_000 {
		t.Errorf("tokens: limit %d, want 10000", h.ledger.limit)
	}
	if r := h.get("/api/account/" + whole.String() + "?min_slot=31"); r.status != 503 || r.body != errorBody(503, "min_slot not reached") {
		t.Errorf("min_slot ahead of the tip: %d %s", r.status, r.body)
	}
}

// TestCursorsWalkWholeLists pages through both lists one element at a time.
func TestCursorsWalkWholeLists(t *testing.T) {
	h := serve(t, nil)
	for path, want := range map[string]int{
		"/api/account/" + wallet.String() + "/tokens":           4,
		"/api/accounts/program/" + ledger.TokenProgram.String(): 2,
	} {
		list, seen := h.get(path).body, 0
		for cursor := ""; seen <= want; seen++ {
			_, page, _ := strings.Cut(h.get(path+"?limit=1"+cursor).body, `":[`)
			element, next, _ := strings.Cut(page, `],"next_cursor":`)
			_, rest, ok := strings.Cut(list, element)
			if list = rest; !ok {
				t.Errorf("%s: %q is not the next element of the whole list", path, element)
			}
			if next == "null}" {
				break
			}
			cursor = "&cursor=" + strings.Trim(next, `"}`)
		}
		if seen != want-1 {
			t.Errorf("%s: %d pages before the last one, want %d", path, seen, want-1)
		}
	}
}

func TestAPanicIsAnsweredAndSurvived(t *testing.T) {
	h := serve(t, nil)
	h.ledger.panics = true
	if r := h.get("/api/account/" + whole.String()); r.status != 500 || r.body != errorBody(500, "an unexpected error occurred") {
		t.Errorf("%d %s", r.status, r.body)
	}
	h.ledger.panics = false
	if r := h.get("/api/account/" + whole.String()); r.status != 200 {
		t.Errorf("after it: %d %s", r.status, r.body)
	}
	if got := h.server.meters.panics.Load(); got != 1 {
		t.Errorf("counted %d panics, want 1", got)
	}
}
