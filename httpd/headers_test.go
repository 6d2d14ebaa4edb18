package httpd

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/ratelimit"
)

func TestTagsFollowTheRecord(t *testing.T) {
	h := serve(t, nil)
	tagged := []string{"/api/blocks/latest", "/api/blocks/28", "/api/transaction/" + testSignature(1).String(),
		"/api/account/" + whole.String(), "/api/account/" + whole.String() + "/balance"}
	for _, target := range tagged {
		first := h.get(target)
		tag := first.header.Get("ETag")
		for _, match := range []string{tag, strings.TrimPrefix(tag, "W/"), "*", `"other", ` + tag, tag + `,W/"x"`} {
			r := h.get(target, "If-None-Match: "+match)
			if r.status != 304 || r.body != "" || r.header.Get("ETag") != tag || r.header.Get("Content-Type") != "" || r.header.Get("Cache-Control") != first.header.Get("Cache-Control") {
				t.Errorf("%s with If-None-Match %s: %d %q %v", target, match, r.status, r.body, r.header)
			}
		}
		ledgertest.Equal(t, h.do("HEAD", target, "If-None-Match: "+tag).status, 304, "HEAD %s", target)
		ledgertest.Equal(t, h.get(target, `If-None-Match: "x"`, "If-None-Match: "+tag).status, 304, "%s with two lines", target)
		for _, match := range []string{`"x"`, tag[:len(tag)-1], "", "W/" + tag, "x" + tag} {
			if r := h.get(target, "If-None-Match: "+match); r.status != 200 || r.body != first.body {
				t.Errorf("%s with If-None-Match %q: %d, want 200", target, match, r.status)
			}
		}
	}
	for _, target := range []string{"/api/health", "/api/transactions/recent", "/api/account/" + wallet.String() + "/tokens", "/api/accounts?keys=" + whole.String()} {
		ledgertest.Equal(t, h.get(target, "If-None-Match: *").status, 200, "%s, which has no tag", target)
	}
	ledgertest.Equal(t, h.get("/api/account/"+missing.String(), "If-None-Match: *").status, 404, "a missing account")
}

// TestTagsChangeWithWhatIsShown changes one thing after the other: the tags of the targets that show it change, and no others.
func TestTagsChangeWithWhatIsShown(t *testing.T) {
	h := serve(t, nil)
	h.putMints()
	token := testKey(30)
	targets := map[string]string{
		"account": "/api/account/" + whole.String(), "balance": "/api/account/" + whole.String() + "/balance",
		"partial": "/api/account/" + part.String(),
		"plain":   "/api/account/" + token.String(), "token": "/api/account/" + token.String() + "?include=token",
		"mint": "/api/account/" + mintA.String() + "?include=token",
	}
	tags := func() map[string]string {
		all := make(map[string]string)
		for name, target := range targets {
			all[name] = h.get(target).header.Get("ETag")
			ledgertest.Equal(t, h.get(target, "If-None-Match: "+all[name]).status, 304, "%s with its tag", target)
		}
		return all
	}
	change := func(key ledger.Pubkey, to func(*ledger.Account)) func() {
		return func() {
			a := h.ledger.accounts[key]
			to(&a)
			h.ledger.put(a)
		}
	}
	before := tags()
	if before["token"] == before["plain"] {
		t.Error("the tag does not cover token facts")
	}
	for _, step := range []struct {
		what    string
		do      func()
		changed string
	}{
		{"the slot", func() { h.ledger.head.Tips[ledger.Processed].Slot = 31 }, ""},
		{"the rent epoch", change(whole, func(a *ledger.Account) { a.RentEpoch-- }), "account"},
		{"the lamports", change(whole, func(a *ledger.Account) { a.Lamports-- }), "account balance"},
		{"what is known", change(part, func(a *ledger.Account) { a.Known |= ledger.FieldExecutable }), "partial"},
		{"the amount", change(token, func(a *ledger.Account) {
			held := *a.Token
			held.Amount++
			a.Token = &held
		}), "token"},
		{"the decimals", func() { h.ledger.mints[mintA] = &ledger.Mint{Decimals: 5, Supply: ledger.Some(uint64(1<<64 - 1))} }, "mint token"},
	} {
		step.do()
		after := tags()
		var changed []string
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			if after[name] != before[name] {
				changed = append(changed, name)
			}
		}
		ledgertest.Equal(t, strings.Join(changed, " "), step.changed, "%s: the tags that changed", step.what)
		before = after
	}
}

func TestLongBodiesAreCompressedAsAsked(t *testing.T) {
	h := serve(t, nil)
	const long, short = "/api/transactions/recent", "/api/health"
	plain := h.get(long).body
	if len(plain) <= minCompressBytes {
		t.Fatalf("%s has only %d bytes", long, len(plain))
	}
	rows, err := os.ReadFile("testdata/codings.rows") // an Accept-Encoding => the coding
	must(t, err)
	for row := range strings.Lines(string(rows)) {
		accept, want, _ := strings.Cut(strings.TrimSuffix(row, "\n"), " => ")
		r := h.get(long, "Accept-Encoding: "+accept)
		ledgertest.Equal(t, r.header.Get("Content-Encoding"), want, "Accept-Encoding %q: Content-Encoding", accept)
		ledgertest.Equal(t, decompress(t, r), plain, "Accept-Encoding %q: the body", accept)
		ledgertest.Equal(t, h.get(short, "Accept-Encoding: "+accept).header.Get("Content-Encoding"), "", "Accept-Encoding %q: the coding of a short body", accept)
	}
	ledgertest.Equal(t, h.get(long, "Accept-Encoding: br", "Accept-Encoding: gzip").header.Get("Content-Encoding"), "gzip", "the coding by two lines")
	tag := h.get("/api/blocks/30?include=transactions").header.Get("ETag")
	if r := h.get("/api/blocks/30?include=transactions", "Accept-Encoding: zstd"); r.header.Get("ETag") != tag || r.header.Get("Content-Encoding") != "zstd" {
		t.Errorf("compressed: ETag %s, want %s", r.header.Get("ETag"), tag)
	}
}

func decompress(t *testing.T, r reply) string {
	t.Helper()
	var response fasthttp.Response
	response.Header.SetContentEncoding(r.header.Get("Content-Encoding"))
	response.SetBodyString(r.body)
	out, err := response.BodyUncompressed()
	must(t, err)
	return string(out)
}

// TestEveryRequestOfABatchIsCounted uses the rate limit up in the middle of one: ten refusals in a row end the connection.
func TestEveryRequestOfABatchIsCounted(t *testing.T) {
	h := serve(t, func(c *Config) { c.PerMinute = 3 })
	var got []string
	for _, r := range h.exchange("batch", strings.Repeat(second, 3+10+2)) {
		got = append(got, fmt.Sprint(r.status, " ", r.header.Get("X-RateLimit-Remaining"), r.header.Get("Retry-After"), " ", r.closes))
	}
	want := slices.Concat([]string{"200 2 false", "200 1 false", "200 0 false"}, slices.Repeat([]string{"429 060 false"}, 9), []string{"429 060 true"})
	if !slices.Equal(got, want) || h.ledger.asked.Load() != 3 {
		t.Errorf("status, remaining, Retry-After and whether it closes: %q, want %q; %d questions were asked", got, want, h.ledger.asked.Load())
	}
	ledgertest.Equal(t, h.server.meters.limited[ratelimit.Minute].Load(), 10, "refusals by the minute")
}

// TestMalformedRequestsCount makes the parse errors of one client use up its hour.
func TestMalformedRequestsCount(t *testing.T) {
	w := serveTCP(t, func(c *Config) { c.PerHour = 2 })
	bad := "GET / HTTP/9.9\r\n\r\n"
	for i, want := range []int{400, 400, 429} {
		if r := w.exchange("bad", bad); len(r) != 1 || r[0].status != want {
			t.Errorf("request %d: %v, want one %d", i, r, want)
		}
	}
	ledgertest.Equal(t, w.server.meters.limited[ratelimit.Hour].Load(), 1, "refusals by the hour")
}

// G27: requests are counted by route and class, and no series is of what clients sent.
func TestMetricsCountByRouteAndClass(t *testing.T) {
	h := serve(t, nil)
	h.get("/api/account/" + whole.String())
	h.get("/api/account/" + whole.String())
	h.get("/api/account/x")
	h.get("/nothing/" + strings.Repeat("a", 100))
	var buf bytes.Buffer
	h.server.config.WriteMetrics(&buf)
	for _, want := range []string{
		"# TYPE ledgerd_http_requests_total counter\n",
		`ledgerd_http_requests_total{route="account",status="2xx"} 2` + "\n",
		`ledgerd_http_requests_total{route="account",status="4xx"} 1` + "\n",
		`ledgerd_http_requests_total{route="none",status="4xx"} 1` + "\n",
		"# TYPE ledgerd_http_request_duration_seconds histogram\n",
		`ledgerd_http_request_duration_seconds_bucket{route="account",le="+Inf"} 3` + "\n",
		`ledgerd_http_request_duration_seconds_count{route="account"} 3` + "\n",
	} {
		ledgertest.Contains(t, buf.String(), want, "the metrics")
	}
	if r := h.get("/api/metrics"); r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain; version=0.0.4") || !strings.Contains(r.body, "ledgerd_http_requests_total{") {
		t.Errorf("/api/metrics: %d %q", r.status, r.header.Get("Content-Type"))
	}
	lines := strings.Count(buf.String(), "\n")
	for i := range 100 {
		h.get(fmt.Sprintf("/api/spray-%d", i))
	}
	buf.Reset()
	if h.server.config.WriteMetrics(&buf); strings.Count(buf.String(), "\n") != lines {
		t.Error("the number of series grew with what clients sent")
	}
}
