package rpc

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodejson"
	"ledgerd/engine/source/upstream"
)

// F27, F28: an answer that is garbage, too large, cut or silent is an error of its kind, and tells no secret. An entry of
// testdata/errors.txt is a name, the status and the body of an answer, and the kind and the error.
func TestErrorsOfCallsAreToldApart(t *testing.T) {
	whole := `{"jsonrpc":"2.0","id":1,"result":` + (&fakeBlock{parent: 6}).json() + `}`
	_, err := parse[nodejson.Block]([]byte(whole), "getBlock", 1)
	must(t, err)
	const number, garbled = `{"jsonrpc":"2.0","id":1,"result":7}`, "garbage: getBlock: the answer is not what was asked for"
	const unreachable = "unreachable"
	type test struct {
		answer answer
		want   string // the kind and the error
	}
	tests := map[string]test{
		"other version":          {says(200, strings.Replace(whole, `"2.0"`, `"1.0"`, 1)), garbled + ": it is no answer of JSON-RPC 2.0"},
		"other id":               {says(200, strings.Replace(whole, `"id":1`, `"id":2`, 1)), garbled + ": it answers another call"},
		"id as text":             {says(200, strings.Replace(whole, `"id":1`, `"id":"1"`, 1)), garbled + ": it answers another call"},
		"a parent above":         {gives((&fakeBlock{parent: 9}).json()), garbled + ": the slot is not above its parent's"},
		"signatures alone":       {gives((&fakeBlock{parent: 6, fields: `,"signatures":["a"]`}).json()), garbled + ": transactions is missing"},
		"too long, said":         {says(200, strings.Repeat(" ", 5000)), "too_large: getBlock: the answer is too large: it is too long"},
		"too long, chunked":      {streamSpaces, "too_large: getBlock: the answer is too large: it is too long"},
		"too long when unpacked": {zipped(strings.Repeat(" ", 1<<20), slices.Clone), "too_large: getBlock: the answer is too large: it is too long"},
		"cut":                    {says(200, "{", "Content-Length", "100"), "closed: getBlock: the connection ended before the answer"},
		"cut gzip":               {zipped(number, func(b []byte) []byte { return b[:len(b)-9] }), "closed: getBlock: the connection ended before the answer"},
		"gzip of nothing":        {zipped(number, func(b []byte) []byte { return b[:5] }), "closed: getBlock: the connection ended before the answer"},
		"wrong sum in gzip":      {zipped(number, func(b []byte) []byte { b[len(b)-6]++; return b }), garbled},
		"damaged gzip":           {zipped(number, func(b []byte) []byte { b[10] = 0xff; return b }), garbled},
		"called gzip":            {says(200, number, "Content-Encoding", "gzip"), garbled},
		"packed unasked":         {says(200, "\x0b\x02\x80", "Content-Encoding", "br"), garbled + ": malformed JSON"},
		"a permanent redirect":   {says(308, "", "Location", "http://elsewhere.example/"), "refused: getBlock: the node refuses the call (308)"},
		"hung up":                {hangsUp, "closed: getBlock: the connection ended before the answer"},
		"silence":                {isSilent, "stalled: getBlock: the node did not answer in time"},
		unreachable:              {nil, "dial: getBlock: the node cannot be reached"},
	}
	for _, lines := range datatest.Entries(t, "errors.txt") {
		status, body, _ := strings.Cut(lines[1], " ")
		code, err := strconv.Atoi(status)
		must(t, err)
		tests[lines[0]] = test{says(code, body), strings.TrimPrefix(lines[2], "> ")}
	}
	for name, tt := range tests {
		c := Config{MaxBlock: 4096}
		if name == unreachable {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("dial tcp node.example:8899: secret")
			}
		}
		play(t, c, func(t *testing.T, n *fakeNode, s *Source) {
			n.fault = tt.answer
			_, err := s.client.block(t.Context(), 7)
			g := s.Upstream()
			kind := upstream.Kind(slices.Index(g.Errors[:], 1))
			if got := fmt.Sprintf("%v: %v", kind, err); got != tt.want {
				t.Fatalf("%s: counted %v, %s, want %s", name, g.Errors, got, tt.want)
			}
			for _, secret := range []string{"secret", "path-key", "node.example", "\n"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s: the error shows %q: %v", name, secret, err)
				}
			}
		})
	}
}

func hangsUp(*fakeCall) bool { panic(http.ErrAbortHandler) }

func isSilent(c *fakeCall) bool {
	c.ResponseWriter.(http.Flusher).Flush()
	time.Sleep(time.Minute)
	return true
}

// zipped returns a body in gzip, spoilt by a function, and the header that says so.
func zipped(body string, spoil func([]byte) []byte) answer {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, body)
	z.Close()
	return says(200, string(spoil(packed.Bytes())), "Content-Encoding", "gzip")
}

func streamSpaces(c *fakeCall) bool {
	for range 50 {
		fmt.Fprint(c, strings.Repeat(" ", 100))
		c.ResponseWriter.(http.Flusher).Flush()
	}
	return true
}

// F26: a node that limits the rate is not called in a tight loop, and not before the time that it asks for.
func TestNoCallBeginsWhileTheNodeLimitsTheRate(t *testing.T) {
	after := func(value string) answer { return says(429, "", "Retry-After", value) }
	const code, byItself = `{"jsonrpc":"2.0","id":1,"error":{"code":429}}`, 250 * time.Millisecond // without chance
	for name, tt := range map[string]struct {
		limit answer
		want  time.Duration // between calls
		last  time.Duration // when the third call comes; 0: as long after the second
	}{
		"without a time":  {says(429, ""), byItself, 0},
		"no seconds":      {after("0"), byItself, 0},
		"seconds":         {after("7"), 7 * time.Second, 0},
		"by a code":       {says(200, code, "Retry-After", "9"), 9 * time.Second, 0},
		"for too long":    {after("86400"), time.Minute, 0},
		"out of range":    {after("99999999999999999999"), byItself, 0},
		"negative":        {after("-1"), byItself, 0},
		"no number":       {after("soon"), byItself, 0},
		"a date":          {after("Sat, 01 Jan 2000 00:00:05 GMT"), 5 * time.Second, 5*time.Second + byItself},
		"a date long ago": {after("Fri, 31 Dec 1999 00:00:05 GMT"), byItself, 0},
		"a date far off":  {after("Sun, 02 Jan 2000 00:00:05 GMT"), time.Minute, 0},
	} {
		play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
			begun, limit := time.Now(), times(2, tt.limit)
			var came []time.Duration
			n.fault = func(c *fakeCall) bool {
				came = append(came, time.Since(begun))
				return limit(c)
			}
			for range 3 {
				_, _ = s.client.slot(t.Context(), ledger.Confirmed)
			}
			ledgertest.Equal(t, came, []time.Duration{0, tt.want, cmp.Or(tt.last, 2*tt.want)}, "%s: when calls came", name)
		})
	}
}

func TestNoCallThatWaitedForRoomBeginsWhileTheNodeLimitsTheRate(t *testing.T) {
	play(t, Config{Parallel: 3}, func(t *testing.T, n *fakeNode, s *Source) {
		limit := times(3, says(429, "", "Retry-After", "7"))
		n.fault = func(c *fakeCall) bool {
			n.unlocked(func() { time.Sleep(time.Second) })
			return limit(c)
		}
		wantCalls := func(want int) {
			t.Helper()
			synctest.Wait()
			n.locked(func() {
				ledgertest.Equal(t, n.calls["getSlot"], want, "calls")
			})
		}
		for range 10 {
			go func() { _, _ = s.client.slot(t.Context(), ledger.Confirmed) }()
		}
		time.Sleep(7 * time.Second)
		wantCalls(3) // those that were turned down
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := s.client.slot(ctx, ledger.Confirmed)
		ledgertest.ErrorIs(t, err, context.DeadlineExceeded, "a call that gave up")
		time.Sleep(4 * time.Second)
		wantCalls(10)
	})
}

func TestSpecifications(t *testing.T) {
	for spec, tt := range map[string]struct {
		url  string
		want Config
	}{
		"http://127.0.0.1:8899":                            {"http://127.0.0.1:8899", Config{}},
		"https://node.example/key?api-key=x&accounts=none": {"https://node.example/key?api-key=x", Config{Accounts: AccountsNone}},
		"http://u:p@node.example/?from=7&accounts=new":     {"http://u:p@node.example/", Config{Accounts: AccountsNew, From: ledger.Some(ledger.Slot(7))}},
		"http://[::1]:8899?details=accounts&b=2":           {"http://[::1]:8899?b=2", Config{Brief: true}},
		"http://h?details=full&accounts=touched&from=0":    {"http://h", Config{From: ledger.Some(ledger.Slot(0))}},
	} {
		c, err := ParseSpec(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if c.URL.String() != tt.url || c.Accounts != tt.want.Accounts || c.From != tt.want.From || c.Brief != tt.want.Brief {
			t.Errorf("%s: got %+v, %v", spec, c, c.URL)
		}
	}
}
