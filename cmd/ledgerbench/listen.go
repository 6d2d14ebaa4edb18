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
	"time"

	"ledgerd/bench/latency"
	"ledgerd/bench/listen"
	"ledgerd/bench/load"
	"ledgerd/engine/ledger"
	"ledgerd/httpd/client"
)

// mostNames is how many accounts, programs and wallets fit into one subscribe message.
const mostNames = 1000

// listenCommand subscribes to a running server.
type listenCommand struct {
	URL         string        `arg:"" help:"The server: http://HOST:PORT."`
	Sockets     int           `short:"s" help:"How many sockets, all from one address, which all ask for the same." default:"10"`
	Pubkeys     string        `help:"These accounts: base58 keys with commas between them, or a file of them. Default: everything." placeholder:"FILE|LIST"`
	Programs    string        `help:"The accounts of these programs." placeholder:"FILE|LIST"`
	Wallets     string        `help:"These wallets and their token accounts." placeholder:"FILE|LIST"`
	Commitment  string        `help:"Updates of blocks of this commitment: ${enum}." enum:"processed,confirmed,finalized" default:"processed"`
	ResumeEvery time.Duration `help:"How often each socket drops its connection and resumes by seq. Default: never." placeholder:"DURATION"`
	Duration    time.Duration `short:"d" help:"How long to listen." default:"10s"`
	JSON        string        `group:"Output:" name:"json" help:"Write the figures here." placeholder:"FILE" type:"path"`
}

// Run listens and reports. Whatever the server does to sockets that it has let in is a figure and no error.
func (c *listenCommand) Run(ctx context.Context, streams *streams) error {
	config, node, err := c.parse()
	if err != nil {
		return &usageError{err}
	}
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	giveUp := context.AfterFunc(ctx, end)
	pool := listen.Open(open, config)
	giveUp() // from here on an interrupt ends the listening, and not the sockets before they are counted
	defer pool.Close()
	n := pool.Counts()
	if ctx.Err() == nil && n.Connected == 0 && n.Refused[http.StatusTooManyRequests]+n.Refused[http.StatusServiceUnavailable] == 0 {
		return n.Why
	}
	ctx, cancel := context.WithTimeout(ctx, c.Duration)
	defer cancel()
	published := latency.New()
	stopSampling := func() {}
	if c.Commitment == "processed" {
		stopSampling = everySecond(func() { samplePublication(ctx, node, pool, published) })
	}
	began, last, show := time.Now(), n, statusLine(streams.err)
	stopShowing := everySecond(func() {
		n := pool.Counts()
		show(fmt.Sprintf("%.0f of %.0f s: %d sockets, %d updates/s, %.2f MB/s, %d missing, %d twice", time.Since(began).Seconds(),
			c.Duration.Seconds(), n.Connected, n.Updates-last.Updates, float64(n.Bytes-last.Bytes)/1e6, n.Missing, n.Twice))
		last = n
	})
	<-ctx.Done()
	took := time.Since(began)
	stopShowing()
	show("")
	stopSampling()
	l := c.listened(pool, n, took, published)
	return deliver(streams.out, l.text(), c.JSON, l.json())
}

// parse checks the flags.
func (c *listenCommand) parse() (config listen.Config, node *load.Node, err error) {
	if c.Sockets < 1 || c.Sockets > 100_000 {
		return config, nil, errors.New("--sockets must be 1 to 100,000")
	}
	if c.Duration <= 0 || c.ResumeEvery < 0 {
		return config, nil, errors.New("--duration must be above 0, and --resume-every not below")
	}
	address := strings.TrimSuffix(strings.Replace(c.URL, "ws://", "http://", 1), "/ws/accounts")
	if node, err = load.NewNode(address); err != nil {
		return config, nil, err
	}
	query := url.Values{"commitment": {c.Commitment}}
	config = listen.Config{
		Sockets: c.Sockets, URL: "ws" + strings.TrimPrefix(node.URL.String(), "http") + "/ws/accounts", CheckNumbers: true,
		Reconnect: true, ResumeEvery: c.ResumeEvery,
	}
	names, count := make(map[string]any), 0
	for kind, given := range map[string]string{"pubkeys": c.Pubkeys, "programs": c.Programs, "wallets": c.Wallets} {
		if given == "" {
			continue
		}
		keys, err := readNames(given)
		if err != nil {
			return config, nil, fmt.Errorf("--%s: %w", kind, err)
		}
		names[kind], count = keys, count+len(keys)
	}
	if count > mostNames {
		return config, nil, fmt.Errorf("%d accounts, programs and wallets are more than %d", count, mostNames)
	}
	if count > 0 {
		names["type"] = "subscribe"
		config.Opening, _ = json.Marshal(names) // texts always have JSON
		query.Set("mode", "none")
	}
	config.Query = func(int) url.Values { return query }
	return config, node, nil
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
func samplePublication(ctx context.Context, node *load.Node, pool *listen.Pool, published *latency.Histogram) {
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
