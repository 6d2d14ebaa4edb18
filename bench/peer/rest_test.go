package peer

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"ledgerd/bench/load"
	"ledgerd/engine/ledger/ledgertest"
)

// Every server that speaks HTTP is sent the fields of a common client, and no others.
func TestRequestsAreThoseOfCommonClients(t *testing.T) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(load.Get("127.0.0.1:8080", "/api/status", nil))))
	must(t, err)
	want := http.Header{"User-Agent": {"python-requests/2.32.3"}, "Accept-Encoding": {"gzip, deflate"}, "Accept": {"*/*"}, "Connection": {"keep-alive"}}
	if r.Host != "127.0.0.1:8080" || r.RequestURI != "/api/status" || !maps.EqualFunc(r.Header, want, slices.Equal) {
		t.Errorf("%s is asked for %s with %v, want %v", r.Host, r.RequestURI, r.Header, want)
	}
}

// Each answers with the record that was asked for, or that everybody gets, under the fields of
// ledgerd's answer but for webdis; several questions at once are answered in order.
func TestRESTPeersAnswer(t *testing.T) {
	for _, p := range RESTPeers {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			c := config(t)
			s := start(t, &p, c)
			conn, err := net.Dial("tcp", s.Address.String())
			must(t, err)
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			in := bufio.NewReader(conn)
			for range 3 {
				text := bytes.Repeat(s.Request(Record(7).Pubkey), 2)
				_, err := conn.Write(text)
				must(t, err)
				for range 2 {
					ledgertest.Equal(t, restAnswer(t, p.Name, s, in, &c), c.Answer.Body, "answered")
				}
			}
			if s.Version == "" || len(s.Pids()) < 1 || s.Pids()[0] < 2 {
				t.Errorf("version %q, processes %v", s.Version, s.Pids())
			}
			must(t, s.Stop())
			if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

func restAnswer(t *testing.T, name string, s *Server, in *bufio.Reader, c *Config) string {
	t.Helper()
	r, err := http.ReadResponse(in, nil)
	must(t, err)
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || r.ContentLength < 0 {
		t.Errorf("status %d, length %d, %v", r.StatusCode, r.ContentLength, err)
	}
	for field, want := range c.Answer.Head {
		if got := r.Header[field]; !slices.Equal(got, want) && name != "webdis" {
			t.Errorf("field %s is %q, want %q", field, got, want)
		}
	}
	return string(body)
}
