package peer

import (
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// serveNetHTTP is a service as one writes it by hand: records in a map behind a lock, encoded for each answer.
func serveNetHTTP(ln net.Listener, in io.Reader) error {
	return serveAccounts(ln, in, func(records []AccountRecord) bodyOf {
		var mu sync.RWMutex
		byKey := map[string]*AccountRecord{}
		for i := range records {
			byKey[records[i].Pubkey] = &records[i]
		}
		return func(_ http.Header, key string) []byte {
			mu.RLock()
			record := byKey[key]
			mu.RUnlock()
			if record == nil {
				return nil
			}
			body, _ := json.Marshal(record) // it has text and numbers only
			return body
		}
	})
}

// serveTunedNetHTTP holds bodies, which need no lock because nothing writes to them, and states their length.
func serveTunedNetHTTP(ln net.Listener, in io.Reader) error {
	return serveAccounts(ln, in, func(records []AccountRecord) bodyOf {
		bodies := map[string][]byte{}
		for _, r := range records {
			bodies[r.Pubkey], _ = json.Marshal(r)
		}
		return func(h http.Header, key string) []byte {
			h.Set("Content-Length", strconv.Itoa(len(bodies[key])))
			return bodies[key]
		}
	})
}

// bodyOf returns the body that there is for a key, nil without one. It may set fields.
type bodyOf = func(h http.Header, key string) []byte

// serveAccounts answers with the body for the key in the path, and with ledgerd's fields.
func serveAccounts(ln net.Listener, in io.Reader, hold func(records []AccountRecord) bodyOf) error {
	answer, records, err := hear(in)
	if err != nil {
		return err
	}
	bodyOf := hold(records)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/account/{pubkey}", func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(w.Header(), r.PathValue("pubkey"))
		if body == nil {
			http.NotFound(w, r)
			return
		}
		maps.Copy(w.Header(), answer.Head)
		_, _ = w.Write(body) // the client may be gone
	})
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second}
	return serveUntil(in, ln, server.Serve)
}
