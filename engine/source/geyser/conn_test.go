package geyser

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
	"ledgerd/engine/source/upstream"
)

// Files of a token and of headers are read again for each session, and what they hold is shown nowhere. One that is empty for a moment, as it is
// being written, says nothing of what the node replays.
func TestHeadersComeFromFilesAtEachSession(t *testing.T) {
	dir, log := t.TempDir(), bytes.Buffer{}
	token, header := filepath.Join(dir, "token"), filepath.Join(dir, "headers")
	must(t, errors.Join(os.WriteFile(token, []byte("0ld-s3cret\n"), 0o600), os.WriteFile(header, []byte("Authorization: Bearer b-s3cret\nX-Tier: 2\n"), 0o600)))
	next := []string{"", "n3w-s3cret"}
	s := scenario{until: "block 102", config: func(c *Config) {
		c.TokenFile, c.HeaderFile = token, header
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Random = func(int64) int64 {
			must(t, os.WriteFile(token, []byte(next[0]), 0o600))
			next = next[1:]
			return 0
		}
	}}
	s.script = func(c *call) error {
		md, _ := metadata.FromIncomingContext(c.stream.Context())
		if c.number == 0 {
			return status.Error(codes.Unauthenticated, "not "+md.Get("x-token")[0]+"\n with "+strings.Fields(md.Get("authorization")[0])[1])
		}
		ledgertest.Equal(t, fmt.Sprint(md.Get("x-token"), md.Get("authorization"), md.Get("x-tier")), "[n3w-s3cret] [Bearer b-s3cret] [2]", "what the node got")
		return c.send(straight(101, 102)...)
	}
	s.run(t)
	ledgertest.Equal(t, fmt.Sprint(s.begins, len(next)), "[100 100] 0", "where sessions began, and what the file of the token did not hold yet")
	text := log.String() + s.source.Info().Name + s.source.Trouble()
	ledgertest.Holds(t, !strings.Contains(text, "s3cret") && strings.Contains(text, "not *** with ***"), "shown: %s", text)
	for _, wrong := range []string{"", "no header", "grpc-timeout: 1", "a b: c", "x: ", "x: \x00", "x:" + strings.Repeat("s", tokenBytes+1), strings.Repeat("a: b\n", maxHeaders+1), strings.Repeat(" ", headerFileBytes) + "a: b"} {
		must(t, os.WriteFile(header, []byte(wrong), 0o600))
		_, err := (&Config{HeaderFile: header}).headers()
		ledgertest.ErrorSays(t, err, "header-file names", "%.20q", wrong)
	}
}

func TestPingsAreAnsweredAtOnce(t *testing.T) {
	s := scenario{until: "block 101", script: func(c *call) error {
		for range 3 {
			var answer []byte
			asked := time.Now()
			err := cmp.Or(c.send(nodetest.Ping()), c.stream.RecvMsg(&answer))
			must(t, err)
			ledgertest.Equal(t, answer, encodePing(), "the answer")
			ledgertest.Equal(t, time.Since(asked), 0, "how long it took")
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
			must(t, err)
			ledgertest.Equal(t, offered, []string{cmp.Or(name, noCompression)}, "%q: what the client offers", name)
			if name != "" {
				err = grpc.SetSendCompressor(c.stream.Context(), name)
			}
			return cmp.Or(err, calls(shows(append(straight(101, 120), bomb)...), shows(straight(117, 122)...))(c))
		}
		s.run(t)
		n := s.source.Upstream().Errors
		ledgertest.Equal(t, fmt.Sprint(n[upstream.TooLarge], n[upstream.Server]), "1 0", "%q: messages that were too large, and other failures", name)
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
		ledgertest.Equal(t, s.source.Upstream().Connects > 0 && s.of("block") == "101", known, "%s: whether it is followed", options)
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
		n := s.source.Upstream().Messages
		ledgertest.Holds(t, n >= 20 && n <= 200, "%d messages were taken from the socket for a queue of 64 KiB", n)
	}
	s.run(t)
	n := s.source.Upstream()
	ledgertest.Holds(t, slow && n.Reconnects == 0 && n.Messages > 299*8, "%d reconnects, %d messages", n.Reconnects, n.Messages) // it ends within the last block
}
