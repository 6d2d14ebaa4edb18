package rpc

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// zipped returns a body in gzip, spoilt by a function, and the header that says so.
func zipped(body string, spoil func([]byte) []byte) func(w http.ResponseWriter) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, body)
	z.Close()
	return says(200, string(spoil(packed.Bytes())), "Content-Encoding", "gzip")
}

// Whatever else comes in the place of an answer is an error of a kind that says so, and no call hangs on it.
func TestWhatIsNoAnswerIsToldApart(t *testing.T) {
	number := `{"jsonrpc":"2.0","id":1,"result":7}`
	tests := map[string]struct {
		answer func(w http.ResponseWriter)
		want   cause
		kind   upstream.Kind
	}{
		"a batch":                {says(200, "["+number+"]"), garbage, upstream.Garbage},
		"an empty batch":         {says(200, "[]"), garbage, upstream.Garbage},
		"two answers":            {says(200, number+number), garbage, upstream.Garbage},
		"a text":                 {says(200, `"7"`), garbage, upstream.Garbage},
		"null":                   {says(200, "null"), garbage, upstream.Garbage},
		"neither":                {says(200, `{"jsonrpc":"2.0","id":1}`), garbage, upstream.Garbage},
		"both":                   {says(200, `{"jsonrpc":"2.0","id":1,"result":7,"error":{"code":-32005}}`), behind, upstream.Unavailable},
		"an error as text":       {says(200, `{"jsonrpc":"2.0","id":1,"error":"limit"}`), garbage, upstream.Garbage},
		"a code as text":         {says(200, `{"jsonrpc":"2.0","id":1,"error":{"code":"-32005"}}`), garbage, upstream.Garbage},
		"a code out of range":    {says(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-99999999999999999999}}`), garbage, upstream.Garbage},
		"no code":                {says(200, `{"jsonrpc":"2.0","id":1,"error":{}}`), failed, upstream.Server},
		"too deep":               {says(200, strings.Repeat("[", 20_000)), garbage, upstream.Garbage},
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
	}
	for name, tt := range tests {
		bubble.Test(t, func(t *testing.T) {
			n := startNode(t)
			answering(n, tt.answer)
			s := New(n.config())
			defer s.CloseIdle()
			_, err := s.client.slot(t.Context(), ledger.Confirmed)
			if err == nil || causeOf(err) != tt.want {
				t.Errorf("%s: err = %v", name, err)
			}
			if g := s.Upstream(); g.Errors[tt.kind] != 1 {
				t.Errorf("%s: counted as %v, want one %v", name, g.Errors, tt.kind)
			}
		})
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
