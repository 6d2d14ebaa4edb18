package stream

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/budget"
)

// Ledger is what the hub queries for snapshots and for the decimals of token amounts. Query.Head names the version.
type Ledger interface {
	// Accounts answers in the order of keys; those that are missing do not exist.
	Accounts(q ledger.Query, keys []ledger.Pubkey) ([]ledger.Account, ledger.View, error)
	// Program lists accounts in pubkey order after a key, and returns the key after which the next page begins, unknown at the end. The
	// accounts belong to the caller; they are in room if that is large enough. After an error room must not be used again.
	Program(q ledger.Query, program ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error)
	// Tokens lists a wallet's token accounts, as Program does.
	Tokens(q ledger.Query, wallet ledger.Pubkey, after ledger.Opt[ledger.Pubkey], limit int, room []ledger.Account) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error)
	// Mints answers in the order of keys, nil where a mint is not known.
	Mints(q ledger.Query, keys []ledger.Pubkey) ([]*ledger.Mint, ledger.View, error)
}

// Config says what a hub does. Ledger is required; the zero value of the rest works.
type Config struct {
	Ledger  Ledger
	History History // nil: resume goes back as far as RecentBytes
	// Want is called, under the hub's lock, with named accounts whose data should be fetched: accounts whose data an update left unknown,
	// and accounts that a client has just named. Nil: nothing is fetched.
	Want func(keys ...ledger.Pubkey)

	RingBytes   int // newest frames of each level and form, if anybody follows them; 0: 64 MiB
	RecentBytes int // about what is kept of each level to resume from; 0: 64 MiB
	OutboxBytes int // what may wait for one socket beside the ring, and as much again of its snapshots; 0: 32 MiB
	// Memory is the budget of all that waits for sockets, except rings and recent emissions; nil: a budget of its own.
	Memory *budget.Budget

	// OnDelivered is called with the time from Publish to the end of a write that brought the publication to a socket: of several in one
	// write, the newest. It is called by many goroutines at once; nil: by none.
	OnDelivered func(time.Duration)

	Metrics *metrics.Set // nil: a set of its own
	Logger  *slog.Logger // nil: silent
}

// The times of the interface.
const (
	pingInterval      = 20 * time.Second
	silenceTimeout    = 60 * time.Second // a peer that sends nothing for so long is gone
	writeTimeout      = 5 * time.Second  // a socket that takes no byte for so long is reset
	heartbeatInterval = time.Second
	resumeTimeout     = 10 * time.Second // how long a client waits for a seq that is not here yet
)

// How many sockets there may be, and how many of a client, until SetCaps says something else.
const defaultConns, defaultConnsPerClient = 16384, 20

func (c Config) withDefaults() Config {
	if c.Want == nil {
		c.Want = func(...ledger.Pubkey) {}
	}
	c.RingBytes = cmp.Or(c.RingBytes, 64<<20)
	c.RecentBytes = cmp.Or(c.RecentBytes, 64<<20)
	c.OutboxBytes = cmp.Or(c.OutboxBytes, 32<<20)
	c.Memory = cmp.Or(c.Memory, budget.New(0))
	c.Metrics = cmp.Or(c.Metrics, metrics.NewSet())
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// anyOrigin, among the origins, allows all.
const anyOrigin = "*"

// CheckOrigins returns an error if one of the origins is none that a browser can send: those are
// a scheme, a host and perhaps a port. A lone "*" stands for all.
func CheckOrigins(origins []string) error {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		switch {
		case origin == anyOrigin && len(origins) == 1:
		case origin == anyOrigin:
			return errors.New("the origin * allows all: name no others beside it")
		case err != nil || u.Scheme == "" || u.Hostname() == "" || strings.HasSuffix(origin, ":") || origin != strings.ToLower(u.Scheme+"://"+u.Host) || strings.Contains(origin, "*"):
			return fmt.Errorf("origin %q must be a scheme and a host in lower case, such as https://app.example:8443", origin)
		case u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80":
			return fmt.Errorf("origin %q must be a scheme and a host, without the port that browsers leave out", origin)
		}
	}
	return nil
}

// SetCaps changes how many sockets there may be, and how many of a client. Those that are open stay.
func (h *Hub) SetCaps(most, perClient int) {
	h.seats.mu.Lock()
	defer h.seats.mu.Unlock()
	h.seats.total, h.seats.perClient = most, perClient
}

// SetOrigins changes which origins a browser may open sockets from, see CheckOrigins; none stand for all. Sockets that are open stay.
func (h *Hub) SetOrigins(origins []string) { h.origins.Store(&origins) }

// allowsOrigins reports whether a handshake with these Origin fields is allowed: each of them has
// to be. A client that is no browser sends none.
func (h *Hub) allowsOrigins(origins [][]byte) bool {
	allowed := *h.origins.Load()
	if len(allowed) == 0 || slices.Contains(allowed, anyOrigin) {
		return true
	}
	return !slices.ContainsFunc(origins, func(o []byte) bool { return !slices.Contains(allowed, string(o)) })
}
