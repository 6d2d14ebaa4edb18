package geyser

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/upstream"
)

// Config says which node to follow and how. An address is needed; the zero value of all else works.
type Config struct {
	Addresses []string             // host:port; of several nodes of one ledger the next is followed when a session ends
	TLS       *tls.Config          // nil: none
	Headers   upstream.HeaderFiles // read for each session; what they hold is never shown

	Compression    string               // "zstd" or "gzip" where the node may compress, "" for none
	WholeData      bool                 // ask for whole data of accounts, not only for token headers
	Data           *ledger.DataPrograms // whose accounts are told with their data, for which whole data is asked; nil: nobody's
	NoTransactions bool                 // accounts and blocks' heads alone
	Accounts       []ledger.Pubkey      // whose writes are asked for; empty: of all
	SkipVotes      bool                 // no vote transactions

	Filler Filler       // fills gaps; nil: they stay, and the node is not ready
	Logger *slog.Logger // nil: slog.Default

	// Dial opens the connection; nil is a plain dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Random returns a number from 0 up to, not including, n, for waits; nil is math/rand.
	Random func(n int64) int64

	MessageBytes int // larger messages are refused; 0: 64 MiB
	QueueBytes   int // what may wait between socket and blocks, more than MessageBytes; 0: 256 MiB
}

// backoffMin and backoffMax bound the wait before a session, and before a gap is filled again.
const backoffMin, backoffMax = 250 * time.Millisecond, 10 * time.Second

// Filler emits blocks that a stream does not show any more.
type Filler interface {
	// Fill emits the confirmed blocks after the block with slot after and hash afterHash,
	// up to and including another slot, each after its parent. It returns the error of emit.
	Fill(ctx context.Context, after ledger.Slot, afterHash ledger.Hash, upTo ledger.Slot, emit ledger.Emit) error
}

// withDefaults returns the configuration with zero values replaced.
func (c Config) withDefaults() Config {
	c.WholeData = c.WholeData || c.Data != nil
	c.MessageBytes = cmp.Or(c.MessageBytes, 64<<20)
	c.QueueBytes = cmp.Or(c.QueueBytes, 256<<20)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Dial == nil {
		// TCP looks after connections that we do not read for a while. HTTP/2's pings would too, but
		// some servers part with who sends them.
		c.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	return c
}
