package httpd

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mr-tron/base58"

	"ledgerd/engine/ledger"
)

// FuzzPath compares path and route with an oracle made of the standard library.
func FuzzPath(f *testing.F) {
	for r := range routes {
		f.Add("/api/" + routeNames[r])
	}
	for _, row := range badPaths(whole.String()) {
		f.Add(row.target)
	}
	for _, path := range []string{"/api/account/" + whole.String() + "/tokens/", "/api/%61ccount/x/balance", "/api/accounts/program/x", "/api/transactions/recent", "/api/ws/accounts", "/api/openapi.json"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		var r request
		var got route
		decoded, err := r.decodePath([]byte(path))
		if err == nil {
			got, r.variable = matchPath(decoded)
		}
		wantDecoded, want, wantVariable, ok := pathOracle(path)
		if (err == nil) != ok {
			t.Fatalf("%q: error %v, the oracle says ok = %v", path, err, ok)
		}
		if err != nil {
			if err != errPath {
				t.Errorf("%q: error %q is not the fixed one", path, err)
			}
			return
		}
		if string(decoded) != wantDecoded || got != want || string(r.variable) != wantVariable {
			t.Errorf("%q: %q is %s with %q, want %q, %s with %q", path, decoded, routeNames[got], r.variable, wantDecoded, routeNames[want], wantVariable)
		}
	})
}

// pathOracle says what a path means, by splitting it.
func pathOracle(path string) (decoded string, r route, variable string, ok bool) {
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.Count(decoded, "/") != strings.Count(path, "/") || strings.Contains(decoded, "..") {
		return "", 0, "", false
	}
	if strings.ContainsFunc(decoded, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return "", 0, "", false
	}
	templates := map[route]string{
		routeHealth: "health", routeStatus: "status", routeMetrics: "metrics", routeOpenAPI: "openapi.json", routeAccounts: "accounts",
		routeLatestBlock: "blocks/latest", routeBlock: "blocks/*", routeTransaction: "transaction/*", routeRecent: "transactions/recent",
		routeAccount: "account/*", routeBalance: "account/*/balance", routeTokens: "account/*/tokens", routeProgram: "accounts/program/*",
		routeSocket: "ws/accounts",
	}
	have := strings.Split(strings.TrimSuffix(decoded, "/"), "/")
	for r := routeNone + 1; r < routes; r++ { // the literal template of a pair comes first
		want := append([]string{"", "api"}, strings.Split(templates[r], "/")...)
		if len(have) != len(want) {
			continue
		}
		variable, same := "", true
		for i := range have {
			if want[i] == "*" && have[i] != "" {
				variable = have[i]
			} else if want[i] != have[i] {
				same = false
			}
		}
		if same {
			return decoded, r, variable, true
		}
	}
	return decoded, routeNone, "", true
}

// FuzzQuery compares the parameters with an oracle: an error exactly where it has one,
// the same values elsewhere, and never an error text that is not fixed.
func FuzzQuery(f *testing.F) {
	for _, row := range badInputs() {
		path, query, _ := strings.Cut(row.target, "?")
		r, _ := matchPath([]byte(path))
		f.Add(uint8(r), query)
	}
	f.Add(uint8(routeRecent), "limit=1000&before="+testSignature(1).String()+"&after="+testSignature(2).String()+"&min_slot=18446744073709551615")
	f.Add(uint8(routeAccount), "commitment=final%69zed&wait_ms=2000&&=&x=%00&limit")
	f.Add(uint8(routeAccounts), "keys="+whole.String()+","+part.String())
	f.Fuzz(func(t *testing.T, to uint8, query string) {
		r := route(to) % routes
		var got params
		_, err := got.parseQuery(r, []byte(query), nil)
		want, ok := queryOracle(r, query)
		if (err == nil) != ok {
			t.Fatalf("%s?%s: error %v, the oracle says ok = %v", routeNames[r], query, err, ok)
		}
		if err != nil {
			if _, fixed := err.(paramError); !fixed {
				t.Errorf("%s?%s: error %q is not a fixed one", routeNames[r], query, err)
			}
			return
		}
		if got.query != want.query || got.limit != want.limit || got.before != want.before || got.after != want.after ||
			!bytes.Equal(got.cursor, want.cursor) || got.include != want.include || !slices.Equal(got.keys, want.keys) {
			t.Errorf("%s?%s:\n got %+v\nwant %+v", routeNames[r], query, got, want)
		}
	})
}

// queryOracle reads a query with the standard library and another base58.
func queryOracle(r route, query string) (p params, ok bool) {
	known := map[string]bool{}
	if r == routeLatestBlock || r == routeBlock || r == routeTransaction || r == routeRecent || r == routeAccount ||
		r == routeBalance || r == routeTokens || r == routeProgram || r == routeAccounts {
		known = map[string]bool{"commitment": true, "min_slot": true, "wait_ms": true, "include": r == routeBlock, "keys": r == routeAccounts,
			"limit": r == routeRecent || r == routeTokens || r == routeProgram, "cursor": r == routeTokens || r == routeProgram,
			"before": r == routeRecent, "after": r == routeRecent}
	}
	given := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err1 := url.QueryUnescape(rawName)
		value, err2 := url.QueryUnescape(rawValue)
		if err1 != nil || err2 != nil {
			return p, false
		}
		if !known[name] {
			continue
		}
		if _, repeated := given[name]; repeated || value == "" {
			return p, false
		}
		given[name] = value
	}
	ok = true
	check := func(good bool) { ok = ok && good }
	for name, value := range given {
		n, err := strconv.ParseUint(value, 10, 64)
		number := err == nil && strconv.FormatUint(n, 10) == value
		switch name {
		case "commitment":
			level, good := map[string]ledger.Commitment{"processed": ledger.Processed, "confirmed": ledger.Confirmed, "finalized": ledger.Finalized}[value]
			p.query.Commitment = level
			check(good)
		case "min_slot":
			p.query.MinSlot = ledger.Slot(n)
			check(number)
		case "wait_ms":
			p.query.Wait = time.Duration(n) * time.Millisecond
			check(number && n <= 2000)
		case "limit":
			p.limit = int(n)
			check(number && n >= 1 && (n <= 1000 || n <= 10000 && r != routeRecent))
		case "before", "after":
			raw, err := base58.Decode(value)
			check(err == nil && len(raw) == 64)
			if ok && name == "before" {
				p.before = ledger.Some(ledger.Signature(raw))
			} else if ok {
				p.after = ledger.Some(ledger.Signature(raw))
			}
		case "cursor":
			p.cursor = []byte(value)
		case "include":
			p.include = map[string]include{"signatures": includeSignatures, "transactions": includeTransactions}[value]
			check(p.include != includeNothing)
		case "keys":
			for key := range strings.SplitSeq(value, ",") {
				raw, err := base58.Decode(key)
				check(err == nil && len(raw) == 32)
				if ok {
					p.keys = append(p.keys, ledger.Pubkey(raw))
				}
			}
			check(len(p.keys) <= 100)
		}
	}
	return p, ok
}

// FuzzCursor checks that what is accepted is what would be made, and nothing else.
func FuzzCursor(f *testing.F) {
	last := testKey(7)
	f.Add(string(appendCursor(nil, tokenList, &wallet, &last)))
	for _, bad := range badCursors() {
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		after, err := parseCursor([]byte(cursor), tokenList, &wallet)
		if err == nil && after.Known && string(appendCursor(nil, tokenList, &wallet, &after.Value)) != cursor {
			t.Errorf("%q is accepted but means another cursor", cursor)
		}
	})
}

// FuzzHead checks that a verdict on some bytes stands whatever follows them, so that it
// does not depend on how a request is cut into packets, and that net/http reads the same
// length from what is accepted.
func FuzzHead(f *testing.F) {
	for _, raw := range []string{
		second, "\r\n" + second, "POST / HTTP/1.0\r\nContent-Length: 12\r\n\r\nhello, world", "GET http://x/ HTTP/1.1\r\nHost: x\r\nX:y\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		whole, verdict := scanHead(raw)
		for n := range raw {
			part, early := scanHead(raw[:n])
			if early != headIncomplete && (early != verdict || part != whole) {
				t.Fatalf("%q: %v, %d after %d bytes, then %v, %d", raw, part, early, n, whole, verdict)
			}
		}
		if verdict != headAccepted {
			return
		}
		if whole.bytes > len(raw) || whole.body < 0 || whole.body > maxBodyBytes || !bytes.HasSuffix(raw[:whole.bytes], []byte("\r\n\r\n")) {
			t.Fatalf("%q: accepted as %+v", raw, whole)
		}
		head := bytes.TrimPrefix(raw[:whole.bytes], []byte("\r\n"))
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
		if err == nil && (r.ContentLength != int64(whole.body) || len(r.TransferEncoding) > 0) {
			t.Errorf("%q: body of %d bytes, net/http says %d, %v", raw, whole.body, r.ContentLength, r.TransferEncoding)
		}
	})
}

// FuzzAcceptEncoding checks that a chosen coding was named or covered by a star.
func FuzzAcceptEncoding(f *testing.F) {
	f.Add("zstd;q=0.5, gzip")
	f.Add("*;q=0, identity")
	f.Fuzz(func(t *testing.T, accept string) {
		c := chooseCoding([]byte(accept))
		if c != identityCoding && !strings.Contains(strings.ToLower(accept), codingNames[c]) && !strings.Contains(accept, "*") {
			t.Errorf("%q: chose %s", accept, codingNames[c])
		}
	})
}
