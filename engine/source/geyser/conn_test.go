package geyser

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
	"ledgerd/engine/source/upstream"
)

// Files of a token and of headers are read again for each session, and what they hold is shown nowhere.
func TestHeadersComeFromFilesAtEachSession(t *testing.T) {
	dir, log := t.TempDir(), bytes.Buffer{}
	token, header := filepath.Join(dir, "token"), filepath.Join(dir, "headers")
	must(t, errors.Join(os.WriteFile(token, []byte("0ld-s3cret\n"), 0o600), os.WriteFile(header, []byte("Authorization: Bearer b-s3cret\nX-Tier: 2\nUser-Agent: mine\n"), 0o600)))
	s := scenario{until: "block 102", config: func(c *Config) {
		c.Headers.TokenFile, c.Headers.HeaderFile = token, header
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}
	s.script = func(c *call) error {
		md, _ := metadata.FromIncomingContext(c.stream.Context())
		if c.number == 0 {
			must(t, os.WriteFile(token, []byte("n3w-s3cret"), 0o600))
			return status.Error(codes.Unauthenticated, "not "+c.token[0]+"\n with "+strings.Fields(md.Get("authorization")[0])[1])
		}
		ledgertest.Equal(t, fmt.Sprint(c.token, md.Get("authorization"), md.Get("x-tier"), strings.Fields(md.Get("user-agent")[0])[0]), "[n3w-s3cret] [Bearer b-s3cret] [2]mine", "what the node got")
		return c.send(straight(101, 102)...)
	}
	s.run(t)
	if text := log.String() + s.source.Info().Name + s.source.Trouble(); strings.Contains(text, "s3cret") || !strings.Contains(text, "not *** with ***") {
		t.Errorf("shown: %s", text)
	}
}

// A file of a token that is empty for a moment says nothing of what the node replays.
func TestATokenThatIsBeingWrittenIsReadAgain(t *testing.T) {
	token, waits := filepath.Join(t.TempDir(), "token"), 0
	must(t, os.WriteFile(token, []byte("abc"), 0o600))
	s := scenario{until: "block 112", fill: fillStraight, config: func(c *Config) {
		c.Headers.TokenFile = token
		c.Random = func(int64) int64 {
			content := []byte("def")
			if waits++; waits == 1 {
				content = nil
			}
			must(t, os.WriteFile(token, content, 0o600))
			return 0
		}
	}}
	s.script = func(c *call) error {
		switch from := c.from(); {
		case c.number == 0:
			return c.send(straight(101, 108)...)
		case from.Known:
			return stays(straight(from.Value, 114)...)(c)
		}
		return stays(straight(111, 114)...)(c)
	}
	s.run(t)
	ledgertest.Equal(t, s.of("block"), "101 102 103 104 105 106 107 108 109 110 111 112", "blocks")
	ledgertest.Equal(t, fmt.Sprint(s.begins, s.asked), "[100 107] []", "where sessions began, and what was filled")
}

func TestPingsAreAnsweredAtOnce(t *testing.T) {
	s := scenario{until: "block 101", script: func(c *call) error {
		for range 3 {
			var answer []byte
			asked := time.Now()
			err := cmp.Or(c.send(nodetest.Ping()), c.stream.RecvMsg(&answer))
			if took := time.Since(asked); err != nil || !bytes.Equal(answer, encodePing()) || took > 0 {
				t.Errorf("answered %x after %v, %v", answer, took, err)
			}
		}
		return c.send(straight(101, 101)...)
	}}
	s.run(t)
}

// F27: messages are packed as it was asked for, or not at all, and bounded when they are unpacked.
func TestMessagesComePacked(t *testing.T) {
	bomb := part(nil).Bytes(11, make([]byte, 2<<20))
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

// A node is known by its authorities and its name, and knows a client by its certificate.
func TestTLSNamesTheNode(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate, of example.com
	web.Close()
	pair := web.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	ca, keyFile := filepath.Join(t.TempDir(), "ca"), filepath.Join(t.TempDir(), "key")
	must(t, errors.Join(
		os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600)))
	for options, known := range map[string]bool{
		"https://example.com?tls-ca=" + ca + "&tls-cert=" + ca + "&tls-key=" + keyFile:                     true,
		"https://other.test?tls-name=example.com&tls-ca=" + ca + "&tls-cert=" + ca + "&tls-key=" + keyFile: true,
		"https://other.test?tls-ca=" + ca + "&tls-cert=" + ca + "&tls-key=" + keyFile:                      false,
		"https://example.com?tls-cert=" + ca + "&tls-key=" + keyFile:                                       false,
		"https://example.com?tls-ca=" + ca:                                                                 false,
	} {
		s := scenario{most: 3 * time.Second, script: stays(straight(101, 101)...), config: func(c *Config) {
			parsed, _, err := ParseSpec(options, nil)
			must(t, err)
			c.Addresses, c.TLS = parsed.Addresses, parsed.TLS
		}}
		s.options = []grpc.ServerOption{grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}))}
		s.run(t)
		if n := s.source.Upstream(); (n.Connects > 0) != known || (s.of("block") == "101") != known {
			t.Errorf("%s: %+v", options, n)
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

// A server that takes connections and lets no call begin on them, as one that is about to end, is left for the next node.
func TestNodesThatLetNoCallBeginAreLeft(t *testing.T) {
	s := scenario{until: "block 101", script: stays(straight(101, 101)...), config: func(c *Config) {
		dial, full := c.Dial, bufconn.Listen(64<<10)
		c.Addresses = []string{"full.test:1", "node.test:1"}
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "full.test:1" {
				return dial(ctx, network, address)
			}
			go func() {
				conn, err := full.Accept()
				must(t, err)
				must(t, http2.NewFramer(conn, nil).WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0}))
				_, _ = io.Copy(io.Discard, conn)
			}()
			return full.DialContext(ctx)
		}
	}}
	s.run(t)
	if n := s.source.Upstream(); n.Errors[upstream.Stalled] != 1 {
		t.Errorf("%+v", n)
	}
}

// A server that ends connections before a call begins, as one that is about to end, sees one connection a session, and sessions have pauses.
func TestASessionDialsOnce(t *testing.T) {
	dials := 0
	s := scenario{most: 10 * time.Second, config: func(c *Config) {
		c.Random = nil
		c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dials++
			ending := bufconn.Listen(64 << 10)
			go func() {
				conn, err := ending.Accept()
				must(t, err)
				_, err = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
				must(t, err)
				server := http2.NewFramer(conn, nil)
				must(t, errors.Join(server.WriteSettings(), server.WriteGoAway(0, http2.ErrCodeNo, nil)))
				_, _ = io.Copy(io.Discard, conn)
			}()
			return ending.DialContext(ctx)
		}
	}}
	s.run(t)
	if n := s.source.Upstream().Errors[upstream.Dial]; n < 3 || dials > int(n)+1 {
		t.Errorf("%d dials in %d sessions", dials, n)
	}
}

// A proxy answers in HTTP for the node: that there were too many calls, or that it does not reach the node.
func TestAProxyAnswersForTheNode(t *testing.T) {
	for answer, want := range map[int]upstream.Kind{http.StatusTooManyRequests: upstream.RateLimited, http.StatusBadGateway: upstream.Dial} {
		proxy := http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(answer)
		})}
		proxy.Protocols.SetUnencryptedHTTP2(true)
		s := scenario{fresh: true, config: func(c *Config) {
			c.Random = nil
			c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
				once := bufconn.Listen(64 << 10)
				defer once.Close() // which ends Serve, and not the connection
				go func() { _ = proxy.Serve(once) }()
				return once.DialContext(ctx)
			}
		}}
		s.run(t)
		for kind, n := range s.source.Upstream().Errors {
			if (n > 0) != (upstream.Kind(kind) == want) {
				t.Errorf("%d: %d times counted as %v", answer, n, upstream.Kind(kind).Reason())
			}
		}
	}
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
