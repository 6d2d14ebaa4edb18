package geyser

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// The node gets the token, and nobody else does, whatever the node says.
func TestTokensAreSentAndNeverShown(t *testing.T) {
	const token = "t0p-s3cret"
	var got []string
	refuses := func(*call) error { return status.Error(codes.Unauthenticated, "token "+token+"\n is not known") }
	takes := func(c *call) error {
		got = c.token
		return c.send(straight(101, 102)...)
	}
	var log bytes.Buffer
	s := scenario{until: "block 102", script: calls(refuses, takes), config: func(c *Config) {
		c.Token, c.Logger = token, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}
	s.run(t)
	ledgertest.Equal(t, got, []string{token}, "what the node got")
	text := log.String() + s.source.Info().Name + s.source.Trouble()
	if strings.Contains(text, token) || !strings.Contains(text, "token *** is not known") {
		t.Errorf("shown: %s", text)
	}
}

func TestPingsAreAnswered(t *testing.T) {
	s := scenario{until: "block 101", script: func(c *call) error {
		for range 3 {
			if err := c.send(ping); err != nil {
				return err
			}
			var answer []byte
			if err := c.stream.RecvMsg(&answer); err != nil || !bytes.Equal(answer, encodePing()) {
				t.Errorf("answered %x, %v", answer, err)
			}
		}
		return c.send(straight(101, 101)...)
	}}
	s.run(t)
}

// F27: messages are packed as it was asked for, or not at all, and bounded when they are unpacked.
func TestMessagesComePacked(t *testing.T) {
	bomb := part(nil).bytes(11, make([]byte, 2<<20))
	for _, name := range []string{"", "zstd", "gzip"} {
		s := scenario{until: "block 122", config: func(c *Config) { c.Compression, c.MessageBytes = name, 1<<20 }}
		s.script = func(c *call) error {
			offered, err := grpc.ClientSupportedCompressors(c.stream.Context())
			if err != nil || !slices.Equal(offered, []string{cmp.Or(name, noCompression)}) {
				t.Errorf("%q: the client offers %q, %v", name, offered, err)
			}
			if name != "" {
				err = grpc.SetSendCompressor(c.stream.Context(), name)
			}
			return cmp.Or(err, calls(shows(append(straight(101, 120), bomb)...), shows(straight(117, 122)...))(c))
		}
		s.run(t)
		if n := s.source.Upstream().Errors; n[upstream.TooLarge] != 1 || n[upstream.Server] != 0 {
			t.Errorf("%q: %d messages were too large, want 1: %v", name, n[upstream.TooLarge], n)
		}
	}
}

func TestTLSNamesTheNode(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, of example.com
	web.Close()
	pool := x509.NewCertPool()
	pool.AddCert(web.Certificate())
	for _, host := range []string{"example.com", "other.test"} {
		s := scenario{most: 3 * time.Second, script: stays(straight(101, 101)...), config: func(c *Config) {
			c.Address, c.TLS = host+":443", &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
		}}
		s.options = []grpc.ServerOption{grpc.Creds(credentials.NewServerTLSFromCert(&web.TLS.Certificates[0]))}
		s.run(t)
		n, known := s.source.Upstream(), host == "example.com"
		if (n.Connects > 0) != known || (n.Errors[upstream.Dial] == 0) != known || (s.of("block") == "101") != known {
			t.Errorf("%s: %+v", host, n)
		}
	}
}

// A consumer that is slow makes the source take what comes up to its bound, and then leave it.
func TestQueueIsBounded(t *testing.T) {
	s := scenario{until: "block 400", most: 2 * time.Hour, script: stays(straight(101, 400)...)}
	s.config = func(c *Config) { c.QueueBytes = 64 << 10 }
	slow := false
	s.emitted = func(e ledger.Event) {
		if _, isBlock := e.(*ledger.Block); !isBlock || slow {
			return
		}
		slow = true
		time.Sleep(time.Hour)
		if n := s.source.Upstream().Messages; n > 200 || n < 20 {
			t.Errorf("%d messages were taken from the socket for a queue of 64 KiB", n)
		}
	}
	s.run(t)
	if n := s.source.Upstream(); !slow || n.Reconnects != 0 || n.Messages <= 299*8 { // it ends within the last block
		t.Errorf("%d reconnects, %d messages", n.Reconnects, n.Messages)
	}
}

// A server that does not know of slices is asked for all.
func TestServerWithoutSlicesIsAskedForAll(t *testing.T) {
	var sliced []bool
	whole := accountUpdate(101, keyOf(7), keyOf(9), 1, 7, make([]byte, 1000))
	slice := part(nil).bytes(requestDataSlice, part(nil).number(1, 0).number(2, 82))
	s := scenario{until: "block 102", script: func(c *call) error {
		sliced = append(sliced, bytes.Contains(c.request, slice))
		return c.send(slices.Insert(straight(101, 102), 2, whole)...)
	}}
	s.run(t)
	ledgertest.Equal(t, sliced, []bool{true, false}, "whether the sessions asked for slices")
}

// F25: a connection that is never made counts as such.
func TestDialsThatFail(t *testing.T) {
	s := scenario{fresh: true, config: func(c *Config) {
		c.Random = nil
		c.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no route to 10.1.2.3")
		}
	}}
	s.run(t)
	n := s.source.Upstream()
	if failed := n.Errors[upstream.Dial]; failed < 5 || failed > 60 || n.Connects != 0 || s.source.Peers() != 0 {
		t.Errorf("%+v", n)
	}
	if got := s.source.Trouble(); !strings.Contains(got, "cannot be reached") || strings.Contains(got, "10.1.2.3") {
		t.Errorf("Trouble: %q", got)
	}
}
