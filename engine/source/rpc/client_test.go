package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/nodejson"
	"ledgerd/engine/source/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering has the node answer every call by a function of its id.
func answering(n *fakeNode, write func(w http.ResponseWriter)) {
	n.fault = func(w http.ResponseWriter, _ string, _ []json.RawMessage) bool {
		write(w)
		return true
	}
}

// says returns a fault that writes a body with a status.
func says(status int, body string, header ...string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestErrorsOfCallsAreToldApart(t *testing.T) {
	code := func(c int) func(w http.ResponseWriter) {
		return says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"https://secret"}}`, c))
	}
	whole := `{"jsonrpc":"2.0","id":1,"result":` + (&fakeBlock{parent: 6}).json() + `}`
	if _, err := parse[nodejson.Block]([]byte(whole), "getBlock", 1); err != nil {
		t.Fatal(err)
	}
	number := `{"jsonrpc":"2.0","id":1,"result":7}`
	tests := map[string]struct {
		answer func(w http.ResponseWriter)
		want   cause
		kind   upstream.Kind
	}{
		"429":                    {says(429, "slow down"), rateLimited, upstream.RateLimited},
		"429 as a code":          {code(429), rateLimited, upstream.RateLimited},
		"429 of a provider":      {code(-32429), rateLimited, upstream.RateLimited},
		"401":                    {says(401, ""), refused, upstream.Refused},
		"403":                    {says(403, "<html>"), refused, upstream.Refused},
		"404":                    {says(404, ""), refused, upstream.Refused},
		"413":                    {says(413, ""), tooLarge, upstream.TooLarge},
		"a redirect":             {says(302, "", "Location", "http://elsewhere/"), refused, upstream.Refused},
		"500":                    {says(500, ""), failed, upstream.Server},
		"503":                    {says(503, ""), failed, upstream.Server},
		"504":                    {says(504, ""), timedOut, upstream.Stalled},
		"not available yet":      {code(-32004), notYet, upstream.Unavailable},
		"status not yet":         {code(-32014), notYet, upstream.Unavailable},
		"context slot not yet":   {code(-32016), notYet, upstream.Unavailable},
		"unhealthy":              {code(-32005), behind, upstream.Unavailable},
		"skipped or missing":     {code(-32007), absent, upstream.Unavailable},
		"skipped, long-term":     {code(-32009), absent, upstream.Unavailable},
		"cleaned up":             {code(-32001), pruned, upstream.OutOfRange},
		"no history":             {code(-32011), refused, upstream.Refused},
		"version":                {code(-32015), badVersion, upstream.Garbage},
		"unknown code":           {code(-32099), failed, upstream.Server},
		"null":                   {says(200, `{"jsonrpc":"2.0","id":1,"result":null}`), absent, upstream.Unavailable},
		"no JSON":                {says(200, `<html>https://secret</html>`), garbage, upstream.Garbage},
		"nothing":                {says(200, ``), garbage, upstream.Garbage},
		"cut JSON":               {says(200, `{"jsonrpc":"2.0","id":1,"result":{"blockh`), garbage, upstream.Garbage},
		"other version":          {says(200, strings.Replace(whole, `"2.0"`, `"1.0"`, 1)), garbage, upstream.Garbage},
		"other id":               {says(200, strings.Replace(whole, `"id":1`, `"id":2`, 1)), garbage, upstream.Garbage},
		"id as text":             {says(200, strings.Replace(whole, `"id":1`, `"id":"1"`, 1)), garbage, upstream.Garbage},
		"wrong type":             {says(200, `{"jsonrpc":"2.0","id":1,"result":7}`), garbage, upstream.Garbage},
		"an empty block":         {says(200, `{"jsonrpc":"2.0","id":1,"result":{}}`), garbage, upstream.Garbage},
		"a parent above":         {says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"parentSlot":9,"blockhash":%q}}`, hashOf("x").String())), garbage, upstream.Garbage},
		"signatures alone":       {says(200, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"parentSlot":6,"blockhash":%q,"signatures":["a"]}}`, hashOf("x").String())), garbage, upstream.Garbage},
		"too long, said":         {says(200, strings.Repeat(" ", 5000)), tooLarge, upstream.TooLarge},
		"too long, chunked":      {func(w http.ResponseWriter) { streamSpaces(w, 5000) }, tooLarge, upstream.TooLarge},
		"too long when unpacked": {gzipSpaces, tooLarge, upstream.TooLarge},
		"cut":                    {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100"); fmt.Fprint(w, "{") }, broken, upstream.Closed},
		"a batch":                {says(200, "["+number+"]"), garbage, upstream.Garbage},
		"an empty batch":         {says(200, "[]"), garbage, upstream.Garbage},
		"two answers":            {says(200, number+number), garbage, upstream.Garbage},
		"a text":                 {says(200, `"7"`), garbage, upstream.Garbage},
		"null alone":             {says(200, "null"), garbage, upstream.Garbage},
		"neither":                {says(200, `{"jsonrpc":"2.0","id":1}`), absent, upstream.Unavailable},
		"both":                   {says(200, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32005}}`), behind, upstream.Unavailable},
		"an error as text":       {says(200, `{"jsonrpc":"2.0","id":1,"error":"limit"}`), garbage, upstream.Garbage},
		"a code as text":         {says(200, `{"jsonrpc":"2.0","id":1,"error":{"code":"-32005"}}`), garbage, upstream.Garbage},
		"a code out of range":    {says(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-99999999999999999999}}`), garbage, upstream.Garbage},
		"no code":                {says(200, `{"jsonrpc":"2.0","id":1,"error":{}}`), failed, upstream.Server},
		"bytes that are no text": {says(200, "\x00\xff\xfe"), garbage, upstream.Garbage},
		"no content":             {says(204, ""), failed, upstream.Server},
		"a part":                 {says(206, number), failed, upstream.Server},
		"cut gzip":               {zipped(number, func(b []byte) []byte { return b[:len(b)-9] }), broken, upstream.Closed},
		"gzip of nothing":        {zipped(number, func(b []byte) []byte { return b[:5] }), broken, upstream.Closed},
		"wrong sum in gzip":      {zipped(number, func(b []byte) []byte { b[len(b)-6]++; return b }), garbage, upstream.Garbage},
		"damaged gzip":           {zipped(number, func(b []byte) []byte { b[10] = 0xff; return b }), garbage, upstream.Garbage},
		"called gzip":            {says(200, number, "Content-Encoding", "gzip"), garbage, upstream.Garbage},
		"packed unasked":         {says(200, "\x0b\x02\x80", "Content-Encoding", "br"), garbage, upstream.Garbage},
		"less than it says":      {says(200, number, "Content-Length", "100"), broken, upstream.Closed},
		"a permanent redirect":   {says(308, "", "Location", "http://elsewhere.example/"), refused, upstream.Refused},
		"hung up":                {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, broken, upstream.Closed},
		"silence":                {func(w http.ResponseWriter) { w.(http.Flusher).Flush(); time.Sleep(time.Minute) }, timedOut, upstream.Stalled},
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			answering(n, tt.answer)
			c := n.config()
			c.MaxBlock = 4096
			s := New(c)
			defer s.CloseIdle()
			_, err := s.client.block(t.Context(), 7)
			if err == nil || causeOf(err) != tt.want {
				t.Errorf("%s: err = %v", name, err)
				return
			}
			if g := s.Upstream(); g.Errors[tt.kind] != 1 {
				t.Errorf("%s: counted as %v, want one %v", name, g.Errors, tt.kind)
			}
			for _, secret := range []string{"secret", "path-key", "node.example", "\n"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s: the error shows %q: %v", name, secret, err)
				}
			}
		})
	}
}

// zipped returns a body in gzip, spoilt by a function, and the header that says so.
func zipped(body string, spoil func([]byte) []byte) func(w http.ResponseWriter) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, body)
	z.Close()
	return says(200, string(spoil(packed.Bytes())), "Content-Encoding", "gzip")
}

func streamSpaces(w http.ResponseWriter, n int) {
	for range n / 100 {
		fmt.Fprint(w, strings.Repeat(" ", 100))
		w.(http.Flusher).Flush()
	}
}

// gzipSpaces answers a megabyte that takes a kilobyte on the wire.
func gzipSpaces(w http.ResponseWriter) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	fmt.Fprint(z, strings.Repeat(" ", 1<<20))
	z.Close()
}

func TestUnreachableNodesShowNoAddress(t *testing.T) {
	c := (&fakeNode{}).config()
	c.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("dial tcp node.example:8899: secret")
	}
	s := New(c)
	_, err := s.client.slot(t.Context(), ledger.Confirmed)
	if err == nil || err.Error() != "getSlot: the node cannot be reached" {
		t.Errorf("err = %v", err)
	}
	if g := s.Upstream(); g.Connected || g.Errors[upstream.Dial] != 1 {
		t.Errorf("figures: %+v", g)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	tests := map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"3":                             3 * time.Second,
		"86400":                         time.Minute,
		"99999999999999999999":          0,
		"-1":                            0,
		"soon":                          0,
		"Sun, 22 Nov 2026 08:00:05 GMT": 5 * time.Second,
		"Sun, 22 Nov 2026 07:00:00 GMT": 0,
		"Mon, 23 Nov 2026 08:00:05 GMT": time.Minute,
	}
	for header, want := range tests {
		if got := retryAfter(header, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", header, got, want)
		}
	}
}

func TestNoCallBeginsWhileTheNodeLimitsTheRate(t *testing.T) {
	tests := map[string]struct {
		header string
		want   []time.Duration // when calls come
	}{
		"by seconds":   {"7", []time.Duration{0, 7 * time.Second, 14 * time.Second}},
		"by itself":    {"", []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond}}, // without chance: the least
		"for too long": {"3600", []time.Duration{0, time.Minute, 2 * time.Minute}},
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			s := New(n.config())
			defer s.CloseIdle()
			begun := time.Now()
			var came []time.Duration
			answering(n, func(w http.ResponseWriter) {
				came = append(came, time.Since(begun))
				if len(came) < 3 {
					says(429, "", "Retry-After", tt.header)(w)
				} else {
					says(200, `{"jsonrpc":"2.0","id":3,"result":9}`)(w)
				}
			})
			for range 3 {
				_, _ = s.client.slot(t.Context(), ledger.Confirmed)
			}
			if fmt.Sprint(came) != fmt.Sprint(tt.want) {
				t.Errorf("%s: calls came after %v, want %v", name, came, tt.want)
			}
		})
	}
}

func TestNoCallThatWaitedForRoomBeginsWhileTheNodeLimitsTheRate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		c := n.config()
		c.Parallel = 3
		s := New(c)
		defer s.CloseIdle()
		var came atomic.Int64
		n.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if came.Add(1) <= 3 {
				time.Sleep(time.Second)
				says(429, "", "Retry-After", "7")(w)
				return
			}
			says(500, "")(w)
		})
		for range 10 {
			go func() { _, _ = s.client.slot(t.Context(), ledger.Confirmed) }()
		}
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if got := came.Load(); got != 3 {
			t.Errorf("%d calls began, want the 3 that were turned down", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.client.slot(ctx, ledger.Confirmed); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v of a call that gave up", err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := came.Load(); got != 10 {
			t.Errorf("%d calls came, want 10", got)
		}
	})
}

func TestSpecifications(t *testing.T) {
	good := map[string]struct {
		url  string
		want Config
	}{
		"http://127.0.0.1:8899":                            {"http://127.0.0.1:8899", Config{}},
		"https://node.example/key?api-key=x&accounts=none": {"https://node.example/key?api-key=x", Config{Accounts: AccountsNone}},
		"http://u:p@node.example/?from=7&accounts=new":     {"http://u:p@node.example/", Config{Accounts: AccountsNew, From: ledger.Some(ledger.Slot(7))}},
		"http://[::1]:8899?details=accounts&b=2":           {"http://[::1]:8899?b=2", Config{Brief: true}},
		"http://h?details=full&accounts=touched&from=0":    {"http://h", Config{From: ledger.Some(ledger.Slot(0))}},
	}
	for spec, tt := range good {
		c, err := ParseSpec(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if c.URL.String() != tt.url || c.Accounts != tt.want.Accounts || c.From != tt.want.From || c.Brief != tt.want.Brief {
			t.Errorf("%s: got %+v, %v", spec, c, c.URL)
		}
	}
	bad := []string{"", "localhost:8899", "ftp://h", "http://", "http://h/%zz", "http://h?accounts=secret", "http://h?from=secret", "http://h?details=secret", "http://h:secret", "http://h?ws=ws://secret"}
	for _, spec := range bad {
		if _, err := ParseSpec(spec); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: err = %v", spec, err)
		}
	}
	if name := New((&fakeNode{}).config()).Info().Name; name != "rpc:http://node.example:8899" {
		t.Errorf("the name is %q", name)
	}
}

// A provider may say that it limits the rate by a code and for how long by a header.
func TestALimitThatComesAsACodeIsHonoured(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t)
		answering(n, says(200, `{"jsonrpc":"2.0","id":1,"error":{"code":429}}`, "Retry-After", time.Now().Add(9*time.Second).UTC().Format(http.TimeFormat)))
		s := New(n.config())
		defer s.CloseIdle()
		if _, err := s.client.slot(t.Context(), ledger.Confirmed); causeOf(err) != rateLimited || s.client.limited() != 9*time.Second {
			t.Errorf("limited for %v, err = %v", s.client.limited(), err)
		}
	})
}
