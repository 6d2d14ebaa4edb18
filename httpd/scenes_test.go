package httpd

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/ratelimit"
)

// scenes are the servers of golden files. Some take words.
var scenes = map[string]func(c *Config, l *fakeLedger, words string){
	"usual":                    func(*Config, *fakeLedger, string) {},
	"mints":                    func(_ *Config, l *fakeLedger, _ string) { l.putMints() },
	"data":                     func(_ *Config, l *fakeLedger, _ string) { l.putData() },
	"a base without blocks":    func(_ *Config, l *fakeLedger, _ string) { l.Head().HasBlock = false },
	"an import without blocks": func(_ *Config, l *fakeLedger, _ string) { l.Head().HasBlock, l.Head().Imported = false, true },
	"before the first head": func(_ *Config, l *fakeLedger, _ string) {
		l.Newest.Store(nil)
		l.err, l.State.Unhealthy = ledger.ErrUnavailable, "recovering: 40% of the log replayed"
	},
	"a finalized transaction": func(_ *Config, l *fakeLedger, _ string) { l.Chain[1].Transactions[0].Slot = 20 },
	// In slot 28 one of {whole} succeeded, and one failed.
	"a failed transaction, too": func(_ *Config, l *fakeLedger, _ string) {
		failed := &l.Chain[1].Transactions[1]
		failed.Accounts = append(failed.Accounts, whole)
	},
	"an executable is known": func(_ *Config, l *fakeLedger, _ string) {
		a := l.Held[part]
		a.Known |= ledger.FieldExecutable
		l.Put(a)
	},
	// Four accounts hold mintA, two of them as much, and a page of a list has so many.
	"holders in pages": func(c *Config, l *fakeLedger, most string) {
		c.IndexMints = true
		l.Page, _ = strconv.Atoi(most)
		l.putMints()
		for i, amount := range []uint64{5, 1, 5, 1<<64 - 1} {
			a := l.Held[testKey(30)]
			a.Pubkey, a.Token = testKey(byte(70+i)), &ledger.TokenAccount{Mint: mintA, Owner: wallet, Amount: amount}
			l.Put(a)
		}
		delete(l.Held, testKey(30))
	},
	"a mint of five decimals": func(_ *Config, l *fakeLedger, _ string) {
		l.putMints()
		l.Facts[mintA] = &ledger.Mint{Decimals: 5}
	},
	"error": func(_ *Config, l *fakeLedger, name string) {
		if asked, busy := strings.CutPrefix(name, "busy for "); busy {
			d, _ := time.ParseDuration(asked)
			l.err = &ledger.UpstreamError{Busy: true, RetryAfter: d}
			return
		}
		l.err = ledgerErrors[name]
	},
	// A minute and an hour have so many requests. Peers of a Unix socket and of 10.0.0.0/8 are trusted, those of 172.16.0.0/12 exempt.
	"limits": func(c *Config, _ *fakeLedger, words string) {
		minute, hour, _ := strings.Cut(words, " ")
		c.PerMinute, _ = strconv.Atoi(minute)
		c.PerHour, _ = strconv.Atoi(hour)
		trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), ratelimit.UnixPeers}
		c.Identity = ratelimit.NewIdentity(trusted, []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12")})
	},
	// Each tier has a key that is its name. An address makes so many requests a minute, and has two connections.
	"keys": func(c *Config, _ *fakeLedger, minute string) {
		c.PerMinute, _ = strconv.Atoi(minute)
		c.MaxConnsPerClient = 2
		c.Keys = keysOf(map[string]apikey.Tier{"gold": {Sockets: 3}, "inside": {Exempt: true}})
	},
	// A caller with the key has three requests a minute, and one without has five.
	"a key with less": func(c *Config, _ *fakeLedger, _ string) {
		c.PerMinute, c.PerHour, c.MaxConnsPerClient = 5, 100, 10_000
		c.Keys = keysOf(map[string]apikey.Tier{"gold": {PerMinute: 3, PerHour: 100}})
	},
	// A handshake is refused with a status by whoever gets it, if it is given to anybody; a plain GET is told the same.
	"sockets": func(c *Config, l *fakeLedger, words string) {
		status, _ := strconv.Atoi(words)
		refuse := func(*fasthttp.RequestCtx, ratelimit.Client) error { return tooManySockets(status) }
		c.Upgrade, c.WouldRefuse = refuse, refuse
		c.MayUpgrade = func() bool { return words != "not yet" }
		switch words {
		case "no head":
			l.Newest.Store(nil)
		case "nobody":
			c.Upgrade = nil
		}
	},
	"sockets that are taken": func(c *Config, _ *fakeLedger, _ string) {
		c.Upgrade = func(ctx *fasthttp.RequestCtx, _ ratelimit.Client) error {
			ctx.SetStatusCode(fasthttp.StatusSwitchingProtocols)
			ctx.Hijack(func(net.Conn) {})
			return nil
		}
	},
}

// tooManySockets is why a handshake is refused, with this status.
type tooManySockets int

func (s tooManySockets) Error() string   { return "too many WebSockets" }
func (s tooManySockets) HTTPStatus() int { return int(s) }

// ledgerErrors are what the ledger may fail with, by the names that scenes have for it.
var ledgerErrors = map[string]error{
	"no block yet":                absent(ledger.NoBlockYet),
	"overloaded":                  ledger.ErrUnavailable,
	"a shard is overloaded":       fmt.Errorf("shard 2: %w", ledger.ErrUnavailable),
	"the slot is to come":         ledger.ErrMinSlot,
	"it recovers":                 ledger.ErrRecovering,
	"no block":                    ledger.ErrNoBlock,
	"it fetches":                  ledger.ErrFetching,
	"it fetches no more":          ledger.ErrFetchFull,
	"it fetches too many":         ledger.ErrFetchBusy,
	"the upstream is away":        &ledger.UpstreamError{Err: errors.New("dial http://u:secret@10.0.0.1")},
	"something nobody thought of": errors.New("disk on fire at /secret/path"),
	"corrupt":                     ledger.ErrCorrupt,
}

// keysOf returns a ring with a key for each tier, which is its name.
func keysOf(tiers map[string]apikey.Tier) *apikey.Ring {
	f := &apikey.File{Tiers: tiers}
	for _, name := range slices.Sorted(maps.Keys(tiers)) {
		f.Keys = append(f.Keys, apikey.Entry{Name: name, Tier: name, Hash: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name)))})
	}
	ring := apikey.NewRing(apikey.Tier{PerMinute: 100, PerHour: 1000}, now)
	ring.Load(f)
	return ring
}
