package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/engine/ledger"
	"ledgerd/httpd/client"
)

// mostNames is how many accounts, programs and wallets fit into one subscribe message.
const mostNames = 1000

// listenCommand subscribes to a running server.
type listenCommand struct {
	reach
	Sockets    int           `short:"s" help:"How many sockets, which all ask for the same." default:"10"`
	Ramp       time.Duration `help:"Over which the sockets connect." placeholder:"DURATION"`
	Throttled  int           `help:"So many of the sockets read slowly." placeholder:"N"`
	Throttle   int           `help:"How many bytes a second each of them reads: ${default}." default:"10000" placeholder:"BYTES"`
	Pubkeys    string        `help:"These accounts: base58 keys with commas between them, or a file of them. Default: everything." placeholder:"FILE|LIST"`
	Programs   string        `help:"The accounts of these programs." placeholder:"FILE|LIST"`
	Wallets    string        `help:"These wallets and their token accounts." placeholder:"FILE|LIST"`
	Tokens     bool          `help:"With the facts of token accounts."`
	Overflow   string        `help:"What the node does where a socket reads too slowly: ${enum}." enum:"disconnect,conflate" default:"disconnect"`
	Commitment string        `help:"Updates of blocks of this commitment: ${enum}." enum:"processed,confirmed,finalized" default:"processed"`
	Reference  string        `help:"Tell how much later than a socket at this node the ends of slots come." placeholder:"URL"`
	Duration   time.Duration `short:"d" help:"How long to listen." default:"10s"`
	JSON       string        `group:"Output:" name:"json" help:"Write the figures here; - is the standard output." placeholder:"FILE" type:"path"`
}

// Run listens and reports. Whatever the server does to sockets that it has let in is a figure and no error, and that it lets none in is one.
func (c *listenCommand) Run(ctx context.Context, streams *streams) (err error) {
	config, err := c.parse()
	if err != nil {
		return &usageError{err}
	}
	out, err := openOutput(streams, c.JSON, "")
	if err != nil {
		return &usageError{err}
	}
	defer func() { err = errors.Join(err, out.close()) }()
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	giveUp := context.AfterFunc(ctx, end)
	race := newRace()
	if c.Reference != "" {
		other, err := listen.OpenAll(open, c.referenced(config, race))
		if err != nil {
			return fmt.Errorf("--reference: %w", err)
		}
		defer other.Close()
		config.Ended = race.ended(own)
	}
	pool := listen.Open(open, config)
	giveUp() // from here on an interrupt ends the listening, and not the sockets before they are counted
	defer pool.Close()
	n := pool.Counts()
	if ctx.Err() == nil && n.Connected == 0 && n.Refused[http.StatusTooManyRequests]+n.Refused[http.StatusServiceUnavailable] == 0 {
		return n.Why
	}
	l := c.await(ctx, out, pool, n)
	l.add("behind the reference", "behind_reference", race.lag[own])
	l.add("before the reference", "before_reference", race.lag[reference])
	if err := out.deliver("listen.txt.tmpl", l, l.json()); err != nil || l.Connected > 0 || len(l.Closes) > 0 {
		return err
	}
	return l.Why // nobody was ever let in
}

// await listens for as long as that is to take, and returns what came.
func (c *listenCommand) await(ctx context.Context, out *output, pool *listen.Pool, before listen.Counts) *listened {
	ctx, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	published := latency.New()
	stopSampling := func() {}
	if c.Commitment == "processed" {
		stopSampling = everySecond(func() { samplePublication(ctx, c.node, pool, published) })
	}
	began, last := time.Now(), before
	stopShowing := everySecond(func() {
		n := pool.Counts()
		out.show(fmt.Sprintf("%.0f of %.0f s: %d sockets, %d updates/s, %.2f MB/s, %d missing, %d twice", time.Since(began).Seconds(),
			c.Duration.Seconds(), n.Connected, n.Updates-last.Updates, float64(n.Bytes-last.Bytes)/1e6, n.Missing, n.Twice))
		last = n
	})
	<-ctx.Done()
	took := time.Since(began)
	stopShowing()
	out.show("")
	stopSampling()
	return c.listened(pool, before, took, published)
}

// parse checks the flags.
func (c *listenCommand) parse() (config listen.Config, err error) {
	if c.Sockets < 1 || c.Sockets > 100_000 || c.Throttled < 0 || c.Throttled > c.Sockets {
		return config, errors.New("--sockets must be 1 to 100,000, and --throttled not above")
	}
	if c.Duration <= 0 || c.Ramp < 0 || c.Throttle < 1 {
		return config, errors.New("--duration and --throttle must be above 0, --ramp not below")
	}
	c.URL = asHTTP(c.URL)
	if err := c.reach.parse(); err != nil {
		return config, err
	}
	query := url.Values{"commitment": {c.Commitment}, "overflow": {c.Overflow}}
	if c.Tokens {
		query.Set("tokens", "true")
	}
	config = listen.Config{
		Sockets: c.Sockets, URL: streamURL(c.base), Dial: c.dialer, Headers: c.headers, Ramp: c.Ramp, Throttled: c.Throttled, Throttle: c.Throttle,
		CheckNumbers: true, Reconnect: true,
	}
	names, count := make(map[string]any), 0
	for kind, given := range map[string]string{"pubkeys": c.Pubkeys, "programs": c.Programs, "wallets": c.Wallets} {
		if given == "" {
			continue
		}
		keys, err := readNames(given)
		if err != nil {
			return config, fmt.Errorf("--%s: %w", kind, err)
		}
		names[kind], count = keys, count+len(keys)
	}
	if count > mostNames {
		return config, fmt.Errorf("%d accounts, programs and wallets are more than %d", count, mostNames)
	}
	if count > 0 {
		names["type"] = "subscribe"
		opening, _ := json.Marshal(names) // texts always have JSON
		config.Opening = func(int) [][]byte { return [][]byte{opening} }
		query.Set("mode", "none")
	}
	config.Query = func(int) url.Values { return query }
	if c.Reference != "" {
		_, _, err = newNode(asHTTP(c.Reference), client.Options{})
	}
	return config, err
}

// asHTTP returns the address of a node for that of its stream.
func asHTTP(address string) string {
	if rest, isStream := strings.CutPrefix(address, "ws"); isStream {
		address = "http" + rest
	}
	return strings.TrimSuffix(address, "/ws/accounts")
}

func streamURL(base *url.URL) string {
	return "ws" + strings.TrimPrefix(base.String(), "http") + "/ws/accounts"
}

// referenced returns what one subscriber is that asks the node of reference for the ends of slots alone.
func (c *listenCommand) referenced(config listen.Config, r *race) listen.Config {
	_, base, _ := newNode(asHTTP(c.Reference), client.Options{}) // parse has seen that it is one
	config.Sockets, config.URL, config.Opening, config.Throttled, config.Ended = 1, streamURL(base), nil, 0, r.ended(reference)
	config.Dial = c.dialerTo(base)
	config.Query = func(int) url.Values { return url.Values{"commitment": {c.Commitment}, "mode": {"none"}} }
	return config
}

// race is how much later the ends of slots come at one of two nodes than at the other.
type race struct {
	mu   sync.Mutex
	ends [2]map[uint64]time.Time // of slots that the other node has not told of yet, by node
	lag  [2]*latency.Histogram   // of each behind the other
}

// The nodes of a race.
const own, reference = 0, 1

func newRace() *race {
	return &race{ends: [2]map[uint64]time.Time{{}, {}}, lag: [2]*latency.Histogram{latency.New(), latency.New()}}
}

// raceSlots is how many slots of a node may wait for the other: a slot that one of them skips waits for ever.
const raceSlots = 10_000

// ended returns what is told of the ends of slots at a node. One that comes again after a fork is as if it did not.
func (r *race) ended(node int) func(slot uint64, at time.Time) {
	return func(slot uint64, at time.Time) {
		r.mu.Lock()
		defer r.mu.Unlock()
		mine, others := r.ends[node], r.ends[1-node]
		if before, both := others[slot]; both {
			r.lag[node].Record(at.Sub(before))
			delete(others, slot)
		} else if _, again := mine[slot]; !again && len(mine) < raceSlots {
			mine[slot] = at
		}
	}
}

// readNames returns the keys of a list or of a file.
func readNames(given string) ([]string, error) {
	content, err := os.ReadFile(given)
	switch {
	case err == nil:
		given = string(content)
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	keys := strings.FieldsFunc(given, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
	for i, key := range keys {
		if _, err := ledger.ParsePubkey(key); err != nil {
			return nil, fmt.Errorf("key %d, %.50q: %w", i+1, key, err)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key")
	}
	return keys, nil
}

// samplePublication asks the server which block is the newest and how long ago it was published, and records how much later the
// first socket received its end. The server's clock does not matter. It asks no more when a rate limit comes near.
func samplePublication(ctx context.Context, node *client.Client, pool *listen.Pool, published *latency.Histogram) {
	const fewestRemaining = 20
	const farApart = 10 * time.Millisecond // a response that took longer does not tell the time
	if b := node.Budget(); b.Limit > 0 && b.Remaining < fewestRemaining {
		return
	}
	asked := time.Now()
	newest, err := node.LatestBlock(ctx, client.Read{})
	answered := time.Now()
	if err != nil || answered.Sub(asked) > farApart {
		return // the server may be back later
	}
	lag := newest.Lag + time.Millisecond/2 // it is rounded down
	if first := pool.Arrived(newest.Slot); !first.IsZero() {
		published.Record(first.Sub(answered.Add(-lag)))
	}
}
