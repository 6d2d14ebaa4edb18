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
	"sync"
	"time"
)

func startNetHTTP(ctx context.Context, c *RESTConfig) (RESTServer, error) {
	return startRESTChild(ctx, c, "nethttp", runtime.Version(), func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		e := gob.NewEncoder(out)
		err := e.Encode(nethttpBegin{c.Answer, c.Records.Count})
		for i := 0; i < c.Records.Count && err == nil; i++ {
			err = e.Encode(c.Records.Record(i))
		}
		return errors.Join(err, out.Flush())
	})
}

// nethttpBegin is what the service is told first. Then come the records.
type nethttpBegin struct {
	Answer Answer
	Count  int
}

// accounts are the state of a service as one writes it by hand.
type accounts struct {
	mu    sync.RWMutex
	byKey map[string]*AccountRecord
	head  Answer // the fields of every answer
}

// serveNetHTTP answers with the record that the path names, and ledgerd's fields.
func serveNetHTTP(ln net.Listener, in io.Reader) error {
	in = bufio.NewReaderSize(in, 64<<10)
	d := gob.NewDecoder(in)
	var begin nethttpBegin
	if err := d.Decode(&begin); err != nil {
		return err
	}
	a := &accounts{byKey: make(map[string]*AccountRecord, begin.Count), head: begin.Answer}
	for range begin.Count {
		r := new(AccountRecord)
		if err := d.Decode(r); err != nil {
			return err
		}
		a.byKey[r.Pubkey] = r
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/account/{pubkey}", a.serve)
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
	w.Header().Set("Content-Type", a.head.ContentType)
	for _, f := range a.head.Fields {
		w.Header().Set(f.Name, f.Value)
	}
	_, _ = w.Write(body) // who asked may be gone
}
