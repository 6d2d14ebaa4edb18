package geyser

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/source/upstream"
)

// log is what was logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The node gets the token, and nobody else does, whatever the node says.
func TestTokensAreSentAndNeverShown(t *testing.T) {
	const token = "t0p-s3cret"
	bubble.Test(t, func(t *testing.T) {
		var got []string
		node := newFakeNode(t, func(c *call) error {
			got = c.token
			if c.number == 0 {
				return status.Error(codes.Unauthenticated, "token "+token+"\n is not known")
			}
			return c.send(straight(101, 102)...)
		})
		var log logBuffer
		c := configFor(node)
		c.Token, c.Logger = token, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		out := &collector{until: "block 102"}
		s, err := run(t, c, at(100), out, time.Minute)
		if !errors.Is(err, errEnough) || len(got) != 1 || got[0] != token {
			t.Fatalf("Run: %v, the node got %q", err, got)
		}
		if text := log.String() + s.Info().Name + s.Trouble(); strings.Contains(text, token) || !strings.Contains(text, "token *** is not known") {
			t.Errorf("shown: %s", text)
		}
	})
}

func TestPingsAreAnswered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var answers [][]byte
		node := newFakeNode(t, func(c *call) error {
			for range 3 {
				if err := c.send(part(nil).bytes(6, nil)); err != nil {
					return err
				}
				var answer []byte
				if err := c.stream.RecvMsg(&answer); err != nil {
					return err
				}
				answers = append(answers, answer)
			}
			return c.send(straight(101, 101)...)
		})
		out := &collector{until: "block 101"}
		if _, err := run(t, configFor(node), at(100), out, time.Minute); !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v", err)
		}
		for _, a := range answers {
			if want := part(nil).bytes(9, part(nil).number(1, 1)); !bytes.Equal(a, want) {
				t.Errorf("answered %x, want %x", a, want)
			}
		}
	})
}

// bomb is a message that is small until it is unpacked.
func bomb(size int) part { return part(nil).bytes(11, make([]byte, size)) }

func TestMessagesComePacked(t *testing.T) {
	for _, name := range []string{"zstd", "gzip"} {
		t.Run(name, func(t *testing.T) {
			node := newFakeNode(t, func(c *call) error {
				offered, err := grpc.ClientSupportedCompressors(c.stream.Context())
				if err != nil || len(offered) != 1 || offered[0] != name {
					t.Errorf("the client offers %q, %v", offered, err)
				}
				if err := grpc.SetSendCompressor(c.stream.Context(), name); err != nil {
					t.Errorf("SetSendCompressor: %v", err)
				}
				if c.number == 0 {
					return c.send(append(straight(101, 120), bomb(2<<20))...)
				}
				return c.send(straight(117, 122)...)
			})
			c := configFor(node)
			c.Compression, c.MessageBytes, c.BackoffMin = name, 1<<20, time.Millisecond
			out := &collector{until: "block 122"}
			s, err := run(t, c, at(100), out, time.Minute)
			if !errors.Is(err, errEnough) {
				t.Fatalf("Run: %v after %q", err, out.first(30))
			}
			if n := s.Upstream().Errors[upstream.TooLarge]; n != 1 {
				t.Errorf("%d messages were too large, want 1: %v", n, s.Upstream().Errors)
			}
		})
	}
}

func TestNothingIsPackedUnlessItIsAskedFor(t *testing.T) {
	node := newFakeNode(t, func(c *call) error {
		if offered, _ := grpc.ClientSupportedCompressors(c.stream.Context()); len(offered) != 1 || offered[0] != noCompression {
			t.Errorf("the client offers %q", offered)
		}
		return c.send(straight(101, 101)...)
	})
	if _, err := run(t, configFor(node), at(100), &collector{until: "block 101"}, time.Minute); !errors.Is(err, errEnough) {
		t.Fatalf("Run: %v", err)
	}
}

// certificate makes a certificate for a host and what trusts it.
func certificate(t *testing.T, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{host},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLSNamesTheNode(t *testing.T) {
	cert, pool := certificate(t, "node.test")
	node := newFakeNode(t, func(c *call) error { return c.send(straight(101, 101)...) },
		grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
	c := configFor(node)
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	if _, err := run(t, c, at(100), &collector{until: "block 101"}, time.Minute); !errors.Is(err, errEnough) {
		t.Fatalf("Run: %v", err)
	}
	c.Address, c.BackoffMin = "other.test:443", time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	dials := 0
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials == 3 {
			cancel()
		}
		return node.dial(ctx, network, address)
	}
	s, err := runIn(ctx, c, at(100), &collector{})
	if !errors.Is(err, context.Canceled) || s.Upstream().Errors[upstream.Dial] == 0 || s.Peers() != 0 {
		t.Errorf("Run with a certificate of another host: %v, %v", err, s.Upstream().Errors)
	}
}

// A consumer that is slow makes the source take what comes up to its bound, and then leave it.
func TestQueueIsBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		node := newFakeNode(t, func(c *call) error {
			if err := c.send(straight(101, 400)...); err != nil {
				return err
			}
			return c.hang()
		})
		c := configFor(node)
		c.QueueBytes = 64 << 10
		s, out := New(c), &collector{until: "block 400"}
		out.resume(at(100), s.Info())
		ended := make(chan error, 1)
		go func() {
			ended <- s.Run(t.Context(), at(100), func(ctx context.Context, e ledger.Event) error {
				if _, isBlock := e.(*ledger.Block); isBlock {
					<-release
				}
				return out.emit(ctx, e)
			})
		}()
		time.Sleep(time.Hour)
		if n := s.Upstream().Messages; n > 200 || n < 20 {
			t.Errorf("%d messages were taken from the socket for a queue of 64 KiB", n)
		}
		close(release)
		if err := <-ended; !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v", err)
		}
		if n := s.Upstream(); n.Reconnects != 0 || n.Messages != 300*8 {
			t.Errorf("%d reconnects, %d messages", n.Reconnects, n.Messages)
		}
	})
}

// A server that does not know of slices is asked for all.
func TestServerWithoutSlicesIsAskedForAll(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var sliced []bool
		node := newFakeNode(t, func(c *call) error {
			sliced = append(sliced, bytes.Contains(c.request, part(nil).bytes(requestDataSlice, part(nil).number(1, 0).number(2, 82))))
			all := straight(101, 102)
			all = append(all[:2:2], append([]part{accountUpdate(101, keyOf(7), keyOf(9), 1, 7, make([]byte, 1000))}, all[2:]...)...)
			return c.send(all...)
		})
		out := &collector{until: "block 102"}
		if _, err := run(t, configFor(node), at(100), out, time.Minute); !errors.Is(err, errEnough) {
			t.Fatalf("Run: %v", err)
		}
		if len(sliced) != 2 || !sliced[0] || sliced[1] {
			t.Errorf("sessions asked for slices: %v, want true and then false", sliced)
		}
	})
}

// A connection that is never made counts as such.
func TestDialsThatFail(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := Config{Address: "node.test:1", Logger: quiet(), Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return nil, errors.New("no route to 10.1.2.3")
		}}
		s, err := run(t, c, nil, &collector{}, time.Minute)
		n := s.Upstream()
		if !errors.Is(err, context.DeadlineExceeded) || n.Errors[upstream.Dial] < 5 || n.Errors[upstream.Dial] > 60 || n.Connects != 0 {
			t.Errorf("Run: %v, %+v", err, n.Errors)
		}
		if got := s.Trouble(); !strings.Contains(got, "cannot be reached") || strings.Contains(got, "10.1.2.3") {
			t.Errorf("Trouble: %q", got)
		}
	})
}
