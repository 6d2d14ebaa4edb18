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

// accounts are the state of a service as one writes it by hand.
type accounts struct {
	mu     sync.RWMutex
	byKey  map[string]*AccountRecord
	bodies map[string][]byte // of the tuned service, which needs no lock: nothing writes to it
	head   Answer            // the fields of every answer
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
	a, count := new(accounts), 0
	if err := errors.Join(d.Decode(&a.head), d.Decode(&count)); err != nil {
		return err
	}
	a.byKey, a.bodies = make(map[string]*AccountRecord, count), make(map[string][]byte, count)
	for range count {
		r := new(AccountRecord)
		if err := d.Decode(r); err != nil {
			return err
		}
		body, err := json.Marshal(r)
		if err != nil {
			return err
		}
		a.byKey[r.Pubkey], a.bodies[r.Pubkey] = r, body
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/account/{pubkey}", func(w http.ResponseWriter, r *http.Request) { serve(a, w, r) })
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	_, err := io.Copy(io.Discard, in) // until nobody wants it any more
	err = errors.Join(err, server.Close())
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
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
