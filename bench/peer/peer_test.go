package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger/ledgertest"
)

var must = ledgertest.Must

// TestMain lets this program be a peer, as the one that measures is.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "peer" {
		if err := Serve(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// patience is what nothing here takes.
const patience = 30 * time.Second

// config has a batch of a thousand messages, and 2500 records, of which one is the answer for everybody.
func config(t *testing.T) Config {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	messages := make([][]byte, 1000)
	for i := range messages {
		messages[i] = fmt.Appendf(nil, `{"type":"account_update","pubkey":"%044d","lamports":%d,"timestamp":"2026-01-01T00:00:00Z"}`, i, i)
	}
	body, err := json.Marshal(Record(7))
	must(t, err)
	return Config{
		Self: []string{self, "peer"}, Dir: t.TempDir(), Messages: messages,
		Answer: Answer{http.Header{
			"Content-Type": {"application/json"}, "X-Slot": {"8"}, "Content-Security-Policy": {"default-src 'none'"}, "Etag": {`W/"66"`},
		}, string(body)},
		Accounts: 2500,
	}
}

// start starts a peer, or skips the test where its program is absent.
func start(t *testing.T, p *Peer, c Config) *Server {
	t.Helper()
	s, err := p.Start(t.Context(), c)
	present(t, err)
	return s
}

// present skips the test at the error that a program is absent, and fails it at any other.
func present(t *testing.T, err error) {
	t.Helper()
	if absent := (*proc.AbsentError)(nil); errors.As(err, &absent) {
		t.Skip(absent)
	}
	must(t, err)
}

// A server ends when it is stopped, however much nobody has read, and who publishes is told.
func TestPeersAreStoppedWhileSubscribersHang(t *testing.T) {
	for _, p := range Peers {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			s := start(t, &p, config(t))
			subscriber, err := s.Dial(t.Context())
			must(t, err)
			publishing := make(chan struct{})
			go func() { // nobody reads: sooner or later this waits
				defer close(publishing)
				for range 100 {
					if s.Publish() != nil {
						return
					}
				}
			}()
			must(t, s.Stop())
			select {
			case <-publishing:
			case <-time.After(patience):
				t.Error("Publish does not return when the server is gone")
			}
			_ = subscriber.Close()
		})
	}
}
