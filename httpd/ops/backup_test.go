package ops

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
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
		r := get() // whose head comes before its body
		refused("another backup, or a walk through all accounts, is under way")
		_, err := io.WriteString(feed, content)
		ledgertest.Must(t, errors.Join(err, feed.Close()))
		body, err := io.ReadAll(r.Body)
		if string(body) != content && err == nil || !errors.Is(err, want) || r.ContentLength != 6 {
			t.Errorf("%q of length %d, %v; want %q and %v", body, r.ContentLength, err, content, want)
		}
		<-backup.closed
	}
}

// A receiver that takes a little now and then is cut off, and one that keeps the rate gets all of it. One that takes nothing any more is cut
// off as any client is.
func TestReceiverOfABackupMustKeepARate(t *testing.T) {
	const pieces, piece = 1000, 32 << 10 // what is sent, and how much at once
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
			s := New(Config{})
			s.sending.Store(true)
			body := newSentBody(&soleSend{io.NopCloser(bytes.NewReader(make([]byte, pieces*piece))), s})
			begun, sent, err := time.Now(), 0, error(nil)
			for n := 0; err == nil; sent += n {
				n, err = body.Read(make([]byte, piece))
				time.Sleep(tt.pause)
			}
			took := time.Since(begun)
			ledgertest.Must(t, body.Close())
			if whole := errors.Is(err, io.EOF) && sent == pieces*piece; whole != tt.whole || took > tt.within || s.sending.Load() {
				t.Errorf("%s: %d bytes within %v, %v, under way %v; want whole %v within %v", name, sent, took, err, s.sending.Load(), tt.whole, tt.within)
			}
		})
	}
}
