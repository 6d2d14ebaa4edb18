package main

import (
	"cmp"
	"compress/gzip"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// node is a node behind TLS that answers in all the ways that servers and proxies do, under a limit that counts. It keeps what it was asked.
type node struct {
	limit int             // requests of a client; 0: any number, -1: none
	told  func(asked int) // of each request; nil: nobody is

	url, ca string

	mu     sync.Mutex
	slot   int            // so many requests came
	asked  map[string]int // by path with query, and body; without those that were refused
	spent  map[string]int // by client: its key, or else its address
	fields map[string]bool
}

// start has it listen. As ledgerd does, it names no protocol to those who offer some.
func (n *node) start(t *testing.T) {
	lender := httptest.NewTLSServer(nil) // of a certificate
	lender.Close()
	server := httptest.NewUnstartedServer(n)
	server.Listener = tls.NewListener(server.Listener, &tls.Config{Certificates: lender.TLS.Certificates})
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that end
	server.Start()
	t.Cleanup(server.Close)
	n.url, n.ca = "https://"+server.Listener.Addr().String(), filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(n.ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: lender.Certificate().Raw}), 0o600))
}

// answers are bodies that are not {}, by path.
var answers = map[string]string{
	"/api/status":              `{"version":"1.2.3"}`,
	"/api/blocks/latest":       `{"slot":17}`,
	"/api/transactions/recent": `{"transactions":[{"signature":"S","accounts":["A","B"]}]}`,
	"/api/accounts/program/11111111111111111111111111111111": `{"accounts":[{"pubkey":"K1"},{"pubkey":"closed"},{"pubkey":"K%zz"}]}`, // a server may tell anything
	"/api/text": "{",
	"/door":     `{"jsonrpc":"2.0","id":1,"result":1}`,
}

// admit counts a request, and refuses it where the limit is reached.
func (n *node) admit(h http.Header, r *http.Request, body string) (slot int, refused bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked == nil {
		n.asked, n.spent, n.fields = map[string]int{}, map[string]int{}, map[string]bool{}
	}
	n.slot++
	if n.told != nil {
		n.told(n.slot)
	}
	host, _, _ := strings.Cut(r.RemoteAddr, ":")
	for name, value := range map[string]string{"from": host, "key": r.Header.Get("X-API-Key"), "test": r.Header.Get("X-Test")} {
		if value != "" {
			n.fields[name+" "+value] = true
		}
	}
	client := cmp.Or(r.Header.Get("X-API-Key"), host)
	if n.limit != 0 {
		h.Set("X-RateLimit-Limit", strconv.Itoa(n.limit))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, n.limit-n.spent[client]-1)))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10))
		if n.spent[client] >= n.limit {
			h.Set("Retry-After", "37")
			return n.slot, true
		}
	}
	n.asked[r.RequestURI+body]++
	n.spent[client]++
	return n.slot, false
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	posted, _ := io.ReadAll(r.Body) // a client that goes gets no answer either
	h, status, answer := w.Header(), http.StatusOK, cmp.Or(answers[r.URL.Path], "{}")
	slot, refused := n.admit(h, r, string(posted))
	h.Set("X-Ledger-Slot", strconv.Itoa(slot))
	switch path := r.URL.Path; {
	case refused, path == "/api/full": // the second does not say for how long
		status = http.StatusTooManyRequests
	case path == "/api/slow" && slot > 1: // the first only looks whether it is there
		<-r.Context().Done()
	case path == "/api/falls":
		h.Set("X-Ledger-Slot", strconv.Itoa(100-slot))
	case path == "/door" && strings.Contains(string(posted), "getBehind") && slot > 1: // it falls behind after it was looked for
		answer = `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"Node is behind"}}`
	case path == "/door" && strings.Contains(string(posted), "getNothing"):
		answer = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`
	case path == "/api/nothing":
		status, answer = http.StatusNoContent, ""
	case path == "/api/moved":
		h.Set("Location", "/api/ok")
		status = http.StatusMovedPermanently
	case path == "/api/short": // than it says
		h.Set("Content-Length", "20")
	case path == "/api/head" && slot > 1:
		h.Set("X-Long", strings.Repeat("x", 10_000))
	case path == "/api/ws/accounts":
		status, answer = http.StatusBadRequest, `{"error":"Invalid request parameters","details":"no such commitment"}`
	case path == "/api/account/closed", path == "/api/nope":
		status = http.StatusNotFound
	}
	var out io.Writer = w
	if r.Header.Get("Accept-Encoding") == "gzip" {
		h.Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		out = packed
	}
	w.WriteHeader(status)
	if r.URL.Path == "/api/chunked" {
		_, _ = io.WriteString(out, " ")
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = io.WriteString(out, answer)
}
