package peer

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"
)

func startNetHTTP(ctx context.Context, c *RESTConfig) (*RESTServer, error) {
	return startAccounts(ctx, c, "nethttp")
}

func startTunedNetHTTP(ctx context.Context, c *RESTConfig) (*RESTServer, error) {
	return startAccounts(ctx, c, "nethttp-tuned")
}

func startAccounts(ctx context.Context, c *RESTConfig, name string) (*RESTServer, error) {
	return startRESTChild(ctx, c, name, runtime.Version(), func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		e := gob.NewEncoder(out)
		err := errors.Join(e.Encode(c.Answer), e.Encode(c.Records.Count))
		for i := 0; i < c.Records.Count && err == nil; i++ {
			err = e.Encode(c.Records.Record(i))
		}
		return errors.Join(err, out.Flush())
	})
}

// accounts are the state of a service as one writes it by hand: records behind a lock, or in the tuned one
// their bodies, which need no lock because nothing writes to them.
type accounts struct {
	head   Answer // the fields of every answer
	mu     sync.RWMutex
	byKey  map[string]*AccountRecord
	bodies map[string][]byte
}

// serveNetHTTP answers with the record that the path names, and ledgerd's fields.
func serveNetHTTP(ln net.Listener, in io.Reader) error {
	return serveAccounts(ln, in, (*accounts).serve)
}

func serveTunedNetHTTP(ln net.Listener, in io.Reader) error {
	return serveAccounts(ln, in, (*accounts).serveTuned)
}

func serveAccounts(ln net.Listener, in io.Reader, serve func(*accounts, http.ResponseWriter, *http.Request)) error {
	in = bufio.NewReaderSize(in, 64<<10)
	d := gob.NewDecoder(in)
	a, count := &accounts{byKey: map[string]*AccountRecord{}, bodies: map[string][]byte{}}, 0
	err := errors.Join(d.Decode(&a.head), d.Decode(&count))
	for ; count > 0 && err == nil; count-- {
		r := new(AccountRecord)
		err = d.Decode(r)
		a.byKey[r.Pubkey] = r
		a.bodies[r.Pubkey], _ = json.Marshal(r) // it has text and numbers only
	}
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/account/{pubkey}", func(w http.ResponseWriter, r *http.Request) { serve(a, w, r) })
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, in) // until nobody wants it any more
		_ = server.Close()
	}()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (a *accounts) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.RLock()
	record := a.byKey[r.PathValue("pubkey")]
	a.mu.RUnlock()
	if record == nil {
		http.NotFound(w, r)
		return
	}
	body, err := json.Marshal(record)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	a.answer(w, body)
}

func (a *accounts) serveTuned(w http.ResponseWriter, r *http.Request) {
	body := a.bodies[r.PathValue("pubkey")]
	if body == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	a.answer(w, body)
}

func (a *accounts) answer(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", a.head.ContentType)
	for _, f := range a.head.Fields {
		w.Header().Set(f.Name, f.Value)
	}
	_, _ = w.Write(body) // the client may be gone
}
