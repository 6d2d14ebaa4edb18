package httpd

import (
	"encoding/base64"
	"strings"
	"testing"

	"ledgerd/httpd/encode"
)

// badInput is one row: a request and the exact details of its 400.
type badInput struct {
	target  string
	details error
}

// What is no pubkey, no signature, no plain decimal, anywhere.
var (
	badKeys = []string{
		"x", "0", "latest", "null", "-", "%20", "%25", "%2531",
		strings.Repeat("1", 31), strings.Repeat("1", 33), strings.Repeat("1", 44), strings.Repeat("1", 45),
		strings.Repeat("z", 44),                       // more than 32 bytes
		"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLK0", // 0 is no base58
		"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKO", // nor O
		"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKI", // nor I
		"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKl", // nor l
		"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLK%20",
		"%204vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi",
		"4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi%c3%a9",
		"2AXDGYSE4f2sz7tvMMzyHvUfcoJmxudvdhBcmiUSo6ijwfYmfZYsKRxboQMPh3R4kUhXRVdtSXFXMheka4Rc4P2", // a signature
		strings.Repeat("1", 5000),
	}
	badSignatures = []string{
		"x", "0", "null", "%20", strings.Repeat("1", 63), strings.Repeat("1", 65), strings.Repeat("1", 88), strings.Repeat("1", 89),
		strings.Repeat("z", 88), "4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi", // a pubkey
		"2AXDGYSE4f2sz7tvMMzyHvUfcoJmxudvdhBcmiUSo6ijwfYmfZYsKRxboQMPh3R4kUhXRVdtSXFXMheka4Rc4P0",
		"2AXDGYSE4f2sz7tvMMzyHvUfcoJmxudvdhBcmiUSo6ijwfYmfZYsKRxboQMPh3R4kUhXRVdtSXFXMheka4Rc4P2%2C",
	}
	badNumbers = []string{
		"-1", "+1", "%2B1", "01", "00", "1.0", "1e3", "0x10", "1_000", "%201", "1%20", "%D9%A1", "18446744073709551616",
		"99999999999999999999999999", "x", "true", "1,2",
	}
)

// badInputs returns the table: every parameter of every endpoint with every bad form.
func badInputs() (rows []badInput) {
	add := func(target string, details error) { rows = append(rows, badInput{target, details}) }
	key, sig := whole.String(), testSignature(1).String()
	for _, bad := range badKeys {
		add("/api/account/"+bad, errPubkey)
		add("/api/account/"+bad+"/balance", errPubkey)
		add("/api/account/"+bad+"/tokens", errPubkey)
		add("/api/accounts/program/"+bad, errProgram)
		add("/api/accounts?keys="+bad, errKeys)
		add("/api/accounts?keys="+key+","+bad, errKeys)
	}
	for _, bad := range badSignatures {
		add("/api/transaction/"+bad, errSignature)
		add("/api/transactions/recent?before="+bad, errBefore)
		add("/api/transactions/recent?after="+bad, errAfter)
	}
	reads := []string{"/api/blocks/latest", "/api/blocks/28", "/api/transaction/" + sig, "/api/transactions/recent", "/api/account/" + key,
		"/api/account/" + key + "/balance", "/api/account/" + key + "/tokens", "/api/accounts/program/" + key}
	for i, bad := range badNumbers {
		add("/api/blocks/"+bad, errSlot)
		add(reads[i%len(reads)]+"?min_slot="+bad, errMinSlot)
		add(reads[i%len(reads)]+"?min_slot=1&wait_ms="+bad, errWait)
		add("/api/transactions/recent?limit="+bad, errRecentLimit)
		add("/api/account/"+key+"/tokens?limit="+bad, errListLimit)
		add("/api/accounts/program/"+key+"?limit="+bad, errListLimit)
	}
	for _, at := range reads {
		for _, bad := range []string{"Processed", "final", "recent", "finalized%20", "processed,confirmed", "0"} {
			add(at+"?commitment="+bad, errCommitment)
		}
		add(at+"?commitment=processed&commitment=processed", errRepeated)
		add(at+"?min_slot=1&min_slot=1", errRepeated)
		add(at+"?wait_ms=1&wait%5Fms=2", errRepeated)
		add(at+"?commitment=", errEmpty)
		add(at+"?commitment", errEmpty)
		add(at+"?min_slot=", errEmpty)
		add(at+"?wait_ms", errEmpty)
		add(at+"?wait_ms=2001", errWait)
		add(at+"?x=%", errEscape)
		add(at+"?%zz=1", errEscape)
		add(at+"?commitment=%4", errEscape)
	}
	add("/api/ws/accounts?pubkeys=x", errUpgrade)
	return append(rows, badLists(key, sig)...)
}

func badLists(key, sig string) (rows []badInput) {
	add := func(target string, details error) { rows = append(rows, badInput{target, details}) }
	for _, limit := range []string{"0", "1001", "10000", "18446744073709551615"} {
		add("/api/transactions/recent?limit="+limit, errRecentLimit)
	}
	for list, other := range map[string]encode.Kind{"/api/account/" + key + "/tokens": encode.Members, "/api/accounts/program/" + key: encode.Tokens} {
		add(list+"?cursor="+string(encode.AppendCursor(nil, other, &whole, &part)), errCursor)
		add(list+"?limit=0", errListLimit)
		add(list+"?limit=10001", errListLimit)
		add(list+"?limit=5&limit=5", errRepeated)
		add(list+"?limit=", errEmpty)
		add(list+"?cursor=", errEmpty)
		for _, cursor := range badCursors() {
			add(list+"?cursor="+cursor, errCursor)
		}
	}
	add("/api/transactions/recent?before=", errEmpty)
	add("/api/transactions/recent?after", errEmpty)
	add("/api/transactions/recent?before="+sig+"&before="+sig, errRepeated)
	add("/api/transactions/recent?after="+sig+"&limit=1&after="+sig, errRepeated)
	for _, include := range []string{"all", "Signatures", "signatures,transactions", "signature"} {
		add("/api/blocks/28?include="+include, errParts)
	}
	add("/api/blocks/28?include=", errEmpty)
	add("/api/blocks/28?include=signatures&include=transactions", errRepeated)
	add("/api/accounts", errNoKeys)
	add("/api/accounts/", errNoKeys)
	add("/api/accounts?key="+key, errNoKeys)
	add("/api/accounts?keys=", errEmpty)
	add("/api/accounts?keys=,", errKeys)
	add("/api/accounts?keys="+key+",", errKeys)
	add("/api/accounts?keys=,"+key, errKeys)
	add("/api/accounts?keys="+key+",,"+key, errKeys)
	add("/api/accounts?keys="+key+"&keys="+key, errRepeated)
	add("/api/accounts?keys="+strings.Repeat(key+",", 100)+key, errKeyCount)
	return rows
}

// badCursors are cursors of nothing: too short, too long, other alphabets, other lists,
// line ends and spare bits.
func badCursors() []string {
	last := testKey(30)
	ours := string(encode.AppendCursor(nil, encode.Tokens, &missing, &last)) // of a list nobody asks for
	unknown := append([]byte{'x'}, ours...)
	return []string{
		"x", "0", "null", ours, ours[:86], ours + "A", ours + "=", string(unknown[:87]),
		strings.Repeat("A", 87), strings.Repeat("_", 87), ours[:80] + "%0a%0d%0a%0a%0a%0a%0a",
		ours[:86] + "5", base64.StdEncoding.EncodeToString(make([]byte, 65)), strings.Repeat("+", 87),
	}
}

// TestBadInputIsRefusedExactly checks status and body of the whole table, and that no
// bad request reaches the ledger.
func TestBadInputIsRefusedExactly(t *testing.T) {
	h := serve(t, nil)
	rows := badInputs()
	if len(rows) < 150 {
		t.Fatalf("the table has %d rows, want at least 150", len(rows))
	}
	for _, row := range rows {
		r := h.get(row.target)
		if want := errorBody(400, row.details.Error()); r.status != 400 || r.body != want {
			t.Errorf("%s: %d %s, want 400 %s", row.target, r.status, r.body, want)
		}
		if r.header.Get("Cache-Control") != "no-cache" || r.header.Get("ETag") != "" {
			t.Errorf("%s: Cache-Control %q, ETag %q", row.target, r.header.Get("Cache-Control"), r.header.Get("ETag"))
		}
	}
	if got := h.ledger.asked.Load(); got != 0 {
		t.Errorf("the ledger was asked %d times", got)
	}
}
