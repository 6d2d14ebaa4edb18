package ops

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger/ledgertest"
)

// opened is a file that is awaited while it is open.
type opened struct {
	*strings.Reader
	open *sync.WaitGroup
	size error
}

func (o *opened) Size() (int64, error) { return o.Reader.Size(), o.size }
func (o *opened) Close() error         { o.open.Done(); return nil }

func TestFilesOfSnapshotsAreSentWholeOrInPart(t *testing.T) {
	var open sync.WaitGroup
	files := map[string]*opened{"a.state": {strings.NewReader("0123456789"), &open, nil}, "unread": {strings.NewReader(""), &open, errors.New("a bad disk")}}
	ln := fasthttputil.NewInmemoryListener()
	client := serve(t, ln, ln.Dial, Config{Snapshot: func(name string) (File, error) {
		if name == "broken" {
			return nil, errors.New("a bad disk")
		}
		f := files[name]
		if f == nil {
			return nil, fs.ErrNotExist
		}
		open.Add(1)
		return f, nil
	}})
	for name, tt := range map[string]struct {
		method, path, asked string
		status              int
		body, holds         string
	}{
		"all":                {"GET", "a.state", "", 200, "0123456789", ""},
		"a part":             {"GET", "a.state", "bytes=2-4", 206, "234", "bytes 2-4/10"},
		"the end":            {"GET", "a.state", "bytes=7-", 206, "789", "bytes 7-9/10"},
		"more than there is": {"GET", "a.state", "bytes=8-99", 206, "89", "bytes 8-9/10"},
		"beyond the end":     {"GET", "a.state", "bytes=10-12", 416, "", ""},
		"the wrong way":      {"GET", "a.state", "bytes=4-2", 416, "", ""},
		"no range":           {"GET", "a.state", "lines=1-2", 416, "", ""},
		"without a body":     {"HEAD", "a.state", "bytes=2-4", 206, "", "bytes 2-4/10"},
		"none of the name":   {"GET", "b.state", "", 404, "", ""},
		"a way out":          {"GET", "..%2fnode.json", "", 404, "", ""},
		"a disk that fails":  {"GET", "broken", "", 503, "", ""},
		"a file that fails":  {"GET", "unread", "", 503, "", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tt.method, "http://ops/snapshots/"+tt.path, http.NoBody)
		ledgertest.Must(t, err)
		if tt.asked != "" {
			request.Header.Set("Range", tt.asked)
		}
		answer, err := client.Do(request)
		ledgertest.Must(t, err)
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != tt.status || tt.status < 300 && string(body) != tt.body || answer.Header.Get("Content-Range") != tt.holds {
			t.Errorf("%s: %d %q of %q, %v; want %d %q of %q", name, answer.StatusCode, body, answer.Header.Get("Content-Range"), err, tt.status, tt.body, tt.holds)
		}
		ledgertest.Must(t, answer.Body.Close())
	}
	open.Wait()
}
