package ops

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

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
		refused("another backup is under way")
		_, err = io.WriteString(feed, content[2:])
		ledgertest.Must(t, errors.Join(err, feed.Close()))
		<-backup.closed
		<-got
	}
}
