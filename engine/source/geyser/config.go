package geyser

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"ledgerd/engine/ledger"
)

// Config says which node to follow and how. Address is needed; the zero value of all else works.
type Config struct {
	Address string      // host:port
	TLS     *tls.Config // nil: none
	Token   string      // sent as x-token where it is not empty; never shown

	Compression    string // "zstd" or "gzip" where the node may compress, "" for none
	WholeData      bool   // ask for whole data of accounts, not only for token headers
	NoTransactions bool   // accounts and blocks' heads alone
	SkipVotes      bool   // no vote transactions

	Filler  Filler         // fills gaps; nil: they stay, and the node is not ready
	Fetcher ledger.Fetcher // teaches what a header does not tell of mints; nil: it stays unknown
	Logger  *slog.Logger   // nil: slog.Default

	// Dial opens the connection; nil is a plain dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Random returns a number from 0 up to, not including, n, for waits; nil is math/rand.
	Random func(n int64) int64

	DialTimeout  time.Duration // 0: 5 s
	IdleTimeout  time.Duration // no message for so long ends the session; 0: 5 s
	BlockTimeout time.Duration // no whole block for so long does so too; 0: 15 s
	BackoffMin   time.Duration // least wait before a session; 0: 250 ms
	BackoffMax   time.Duration // most; 0: 10 s
	MessageBytes int           // larger messages are refused; 0: 64 MiB
	QueueBytes   int           // what may wait between socket and blocks; 0: 256 MiB
}

// Filler emits blocks that a stream does not show any more.
type Filler interface {
	// Fill emits the confirmed blocks after the block with slot after and hash afterHash,
	// up to and including another slot, each after its parent. It returns the error of emit.
	Fill(ctx context.Context, after ledger.Slot, afterHash ledger.Hash, upTo ledger.Slot, emit ledger.Emit) error
}

// withDefaults returns the configuration with zero values replaced.
func (c Config) withDefaults() Config {
	duration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	size := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	duration(&c.DialTimeout, 5*time.Second)
	duration(&c.IdleTimeout, 5*time.Second)
	duration(&c.BlockTimeout, 15*time.Second)
	duration(&c.BackoffMin, 250*time.Millisecond)
	duration(&c.BackoffMax, 10*time.Second)
	size(&c.MessageBytes, 64<<20)
	size(&c.QueueBytes, 256<<20)
	if c.Dial == nil {
		// TCP looks after connections that we do not read for a while. HTTP/2's pings would too, but
		// some servers part with who sends them.
		c.Dial = (&net.Dialer{Timeout: c.DialTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}
