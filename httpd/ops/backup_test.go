package ops

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger/ledgertest"
)

// sent is a backup that says when it is closed.
type sent struct {
	io.Reader
	closed chan struct{}
}

func (s *sent) Close() error { close(s.closed); return nil }

func TestBackupIsSentWholeOrCutAndOneAtATime(t *testing.T) {
	backups := make(chan *sent, 3)
	ln := fasthttputil.NewInmemoryListener()
	client := serve(t, ln, ln.Dial, Config{Backup: func() (io.ReadCloser, int64, error) {
		select {
		case b := <-backups:
			return b, 6, nil
		default:
			return nil, 0, errors.New("there is none")
		}
	}})
	get := func() *http.Response {
		r, err := client.Get("http://ops/backup")
		ledgertest.Must(t, err)
		return r
	}
	refused := func(want string) {
		t.Helper()
		r := get()
		if body, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), want) {
			t.Errorf("%d %s, want 503 and %q", r.StatusCode, body, want)
		}
	}

	refused("there is none")
	for content, want := range map[string]error{"whole!": nil, "cut": io.ErrUnexpectedEOF} {
		pipe, feed := io.Pipe()
		backup := &sent{pipe, make(chan struct{})}
		backups <- backup
		got := make(chan struct{})
		go func() {
			defer close(got)
			r := get()
			body, err := io.ReadAll(r.Body)
			if string(body) != content && err == nil || !errors.Is(err, want) || r.ContentLength != 6 {
				t.Errorf("%q of length %d, %v; want %q and %v", body, r.ContentLength, err, content, want)
			}
		}()
		_, err := io.WriteString(feed, content[:2]) // returns when that is read
		ledgertest.Must(t, err)
		refused("another backup, or a walk through all accounts, is under way")
		_, err = io.WriteString(feed, content[2:])
		ledgertest.Must(t, errors.Join(err, feed.Close()))
		<-backup.closed
		<-got
	}
}

// Behind the head of an answer whose length nobody knows, nothing comes that the next answer could be taken to begin with. One in chunks is sent to
// nobody who speaks HTTP/1.0, which has none.
func TestAllAccountsAreSentInChunksOrNotAtAll(t *testing.T) {
	ln := fasthttputil.NewInmemoryListener()
	serve(t, ln, ln.Dial, Config{Pprof: true, State: func(bool) (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader("{}\n")), -1, nil }})
	said := func(text string) (head, behind string) {
		c, err := ln.Dial()
		ledgertest.Must(t, err)
		defer c.Close()
		_, err = io.WriteString(c, text)
		ledgertest.Must(t, err)
		all, err := io.ReadAll(c)
		ledgertest.Must(t, err)
		head, behind, _ = strings.Cut(string(all), "\r\n\r\n")
		return head, behind
	}
	_, behind := said("HEAD /state?accounts HTTP/1.1\r\nHost: ops\r\n\r\nGET /livez HTTP/1.1\r\nHost: ops\r\nConnection: close\r\n\r\n")
	if strings.TrimSpace(behind) != "" && !strings.HasPrefix(behind, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("behind the head comes %q", behind)
	}
	for target, status := range map[string]string{"/state?accounts": "400", "/debug/pprof/trace?seconds=0.01": "200", "/debug/pprof/goroutine?debug=2": "200"} {
		if head, _ := said("GET " + target + " HTTP/1.0\r\n\r\n"); !strings.HasPrefix(head, "HTTP/1.1 "+status) || strings.Contains(head, "Transfer-Encoding") {
			t.Errorf("%s: a client of HTTP/1.0 gets %q", target, head)
		}
	}
}

// A receiver that takes a little now and then is cut off, and one that keeps the rate gets all of it. One that takes nothing any more is cut
// off as any client is.
func TestReceiverOfABackupMustKeepARate(t *testing.T) {
	const piece = 32 << 10 // what is read and written at once
	for name, tt := range map[string]struct {
		pause  time.Duration // of the receiver before it takes a piece
		whole  bool
		within time.Duration
	}{
		"at once":              {0, true, 0},
		"twice the least rate": {piece * time.Second / (2 * leastSendRate), true, time.Hour},
		"half of it":           {piece * time.Second / (leastSendRate / 2), false, 3 * sendPatience},
		"a piece in 10 s":      {10 * time.Second, false, 2 * sendPatience},
	} {
		synctest.Test(t, func(t *testing.T) {
			const pieces = 1000
			node, receiver := net.Pipe()
			defer receiver.Close()
			s := New(Config{})
			s.sending.Store(true)
			body := newSentBody(&soleSend{io.NopCloser(bytes.NewReader(make([]byte, pieces*piece))), s})
			begun := time.Now()
			var receiving sync.WaitGroup
			receiving.Go(func() {
				for {
					time.Sleep(tt.pause)
					if _, err := io.ReadFull(receiver, make([]byte, piece)); err != nil {
						return
					}
				}
			})
			sent, err := io.CopyBuffer(struct{ io.Writer }{node}, body, make([]byte, piece))
			took := time.Since(begun)
			ledgertest.Must(t, errors.Join(body.Close(), node.Close()))
			receiving.Wait()
			if whole := err == nil && sent == pieces*piece; whole != tt.whole || took > tt.within || s.sending.Load() {
				t.Errorf("%s: %d bytes within %v, %v, under way %v; want whole %v within %v", name, sent, took, err, s.sending.Load(), tt.whole, tt.within)
			}
		})
	}
}

// A page whose name was made to lead to this machine has its name in the Host field, and a page of elsewhere says so in Origin.
func TestPagesOfBrowsersGetNoBackup(t *testing.T) {
	own, err := os.Hostname()
	ledgertest.Must(t, err)
	for _, encrypted := range []bool{false, true} {
		ln := fasthttputil.NewInmemoryListener()
		config := Config{
			WriteMetrics: func(io.Writer) {},
			Backup:       func() (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader("whole!")), 6, nil },
			Snapshot:     func(string) (File, error) { return nil, fs.ErrNotExist },
			Name:         "node-1.prod.example",
		}
		s := New(config)
		if encrypted { // the certificate names the node, so no other name leads to it
			s.config.TLS = new(tls.Config)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(ln) }()
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return ln.Dial() }}}
		for _, tt := range []struct {
			host, origin, path string
			want               int
		}{
			{"127.0.0.1:8081", "", "/backup", 200},
			{"[::1]:8081", "", "/backup", 200},
			{"10.0.0.7", "", "/backup", 200},
			{"localhost:8081", "", "/backup", 200},
			{own, "", "/backup", 200},
			{"ingest:8081", "", "/backup", 200}, // of a local network: no page has such a name
			{"rebound.example:8081", "", "/backup", map[bool]int{false: 403, true: 200}[encrypted]},
			{"127.0.0.1.rebound.example", "", "/backup", map[bool]int{false: 403, true: 200}[encrypted]},
			{"rebound.example", "", "/debug/pprof/heap", map[bool]int{false: 403, true: 404}[encrypted]},
			{"rebound.example", "", "/state", map[bool]int{false: 403, true: 404}[encrypted]},
			{"rebound.example", "", "/snapshots/a", map[bool]int{false: 403, true: 404}[encrypted]},
			{"node-2.prod.example:8081", "", "/metrics", 200},
			{"node-1.prod.example:8081", "", "/backup", 200}, // as other nodes are told
			{"node-1.prod.example", "", "/snapshots/a", 404},
			{"127.0.0.1:8081", "http://rebound.example", "/backup", 403},
			{"127.0.0.1:8081", "null", "/metrics", 403},
			{"127.0.0.1:8081", "http://127.0.0.1:8081", "/backup", 403},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+tt.host+tt.path, http.NoBody)
			ledgertest.Must(t, err)
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			answer, err := client.Do(r)
			ledgertest.Must(t, err)
			if body, _ := io.ReadAll(answer.Body); answer.StatusCode != tt.want || tt.want == 403 && !strings.Contains(string(body), `"error":"Forbidden"`) {
				t.Errorf("TLS %v, %s of %s, Origin %q: %d %s, want %d", encrypted, tt.path, tt.host, tt.origin, answer.StatusCode, body, tt.want)
			}
			_ = answer.Body.Close()
		}
		ledgertest.Must(t, s.Shutdown(t.Context()))
		ledgertest.Must(t, <-served)
	}
}
