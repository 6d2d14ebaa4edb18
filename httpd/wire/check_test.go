package wire

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/valyala/fasthttp"
)

// G12, F38: FuzzHead checks that net/http reads every head that is accepted in the same way, and that bare
// line feeds are counted alike however the bytes are cut into packets.
func FuzzHead(f *testing.F) {
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\r\nPOST / HTTP/1.0\r\nContent-Length: 12\r\n\r\nhello, world", "GET http://x/ HTTP/1.1\r\nHost: x\r\nX:y\r\n\r\n",
		"GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nConnection: foo, Upgrade\r\n\r\n", "HEAD / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for cut := 1; cut < len(raw); cut++ {
			if got, want := bareLFs(raw[:cut], 0)+bareLFs(raw[cut:], raw[cut-1]), bareLFs(raw, 0); got != want {
				t.Fatalf("%q cut after %d: %d bare line feeds, want %d", raw, cut, got, want)
			}
		}
		var h fasthttp.RequestHeader
		rest := bytes.NewReader(raw)
		from := bufio.NewReaderSize(rest, readBufferBytes)
		if h.Read(from) != nil {
			return
		}
		closes, fault := checkHead(&h)
		head := raw[:len(raw)-rest.Len()-from.Buffered()]
		if fault != nil || bareLFs(head, 0) > 0 {
			return
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(head, "\r\n"))))
		if err != nil {
			return
		}
		if r.Method != string(h.Method()) || r.RequestURI != string(h.RequestURI()) || r.ContentLength != int64(max(h.ContentLength(), 0)) || len(r.TransferEncoding) > 0 {
			t.Errorf("%q: %s %s with %d bytes, net/http says %s %s with %d, %v", head, h.Method(), h.RequestURI(), h.ContentLength(),
				r.Method, r.RequestURI, r.ContentLength, r.TransferEncoding)
		}
		if r.ProtoAtLeast(1, 1) && closes != r.Close {
			t.Errorf("%q: closes = %v, net/http says %v", head, closes, r.Close)
		}
	})
}
