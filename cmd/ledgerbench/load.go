package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/load"
)

const (
	// defaultRate is how many requests a second are sent to a node that has no limits.
	defaultRate = 1000
	// closedLoop is the value of --rate that has none.
	closedLoop = "max"
	// scriptRequests is how many different requests are made up.
	scriptRequests = 1 << 16
	// fewestRequests is how many a node must still allow to be loaded.
	fewestRequests = 10
)

// loadCommand asks a running server.
type loadCommand struct {
	URL          string        `arg:"" help:"The server: http://HOST:PORT."`
	Rate         string        `help:"Requests a second, each due at a time of its own whatever the responses take, or max: each connection asks again when it is answered. Default: what the node's limits allow, at most 1000." placeholder:"N|max"`
	Connections  int           `short:"c" help:"How many connections ask, all from one address." default:"16"`
	Duration     time.Duration `short:"d" help:"Of the measurement." default:"10s"`
	Warmup       time.Duration `help:"How long the same is asked before, without being counted." default:"1s"`
	Path         []string      `help:"Ask for this path of the interface, such as /blocks/latest; several take turns." sep:"none" placeholder:"PATH" xor:"what"`
	Mix          string        `help:"Ask for these by weight: account, balance, tokens, batch, program, transaction, recent, block, latest." placeholder:"account=1" xor:"what"`
	Keys         string        `help:"Ask for these accounts: a file with a base58 key a line, or keys with commas between them. Default: accounts that the server lists." placeholder:"FILE|LIST"`
	MinSlot      uint64        `help:"Ask for the state at this slot or a later one." placeholder:"SLOT"`
	IgnoreLimits bool          `help:"Ask more than the node allows this client. Without it the load stays below, and ends at the first 429."`
	JSON         string        `name:"json" help:"Write the figures here." placeholder:"FILE" type:"path"`
	HDR          string        `name:"hdr" help:"Write the latencies of each second here, as a log of HdrHistogram." placeholder:"FILE" type:"path"`
}

// Run finds out what to ask, asks, and reports. Whatever comes of the requests is a figure and no error.
func (c *loadCommand) Run(ctx context.Context, streams *streams) error {
	node, mix, rate, err := c.parse()
	if err != nil {
		return &usageError{err}
	}
	if err := node.Find(ctx); err != nil && !(c.IgnoreLimits && node.Limit > 0) {
		return err
	}
	script, err := c.script(ctx, node, mix)
	if err != nil {
		return err
	}
	run := &loadRun{loadCommand: c, url: node.URL.String(), limit: node.Limit}
	if err := run.obey(node, rate); err != nil {
		return err
	}
	l, err := load.New(load.Config{
		Address: node.Address, Connections: c.Connections, Rate: run.rate, Script: script, StopAt429: !c.IgnoreLimits,
	})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := run.measure(ctx, streams.err, l); err != nil {
		return err
	}
	return run.report(streams.out)
}

// parse checks the flags. The rate is 0 for a closed loop, and below 0 if none was named.
func (c *loadCommand) parse() (node *load.Node, mix load.Mix, rate float64, err error) {
	switch c.Rate {
	case "":
		rate = -1
	case closedLoop:
	default:
		if rate, err = strconv.ParseFloat(c.Rate, 64); err != nil || !(rate >= 0) || rate > 1e7 {
			return nil, nil, 0, fmt.Errorf("--rate=%s is not %s or a number up to 10,000,000", c.Rate, closedLoop)
		}
	}
	if c.Connections < 1 || c.Connections > 10_000 {
		return nil, nil, 0, errors.New("--connections must be 1 to 10,000")
	}
	if c.Duration <= 0 || c.Warmup < 0 {
		return nil, nil, 0, errors.New("--duration must be above 0, and --warmup not below")
	}
	for _, path := range c.Path {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \r\n") {
			return nil, nil, 0, fmt.Errorf("--path=%q must begin with / and hold no spaces", path)
		}
	}
	if len(c.Path) == 0 {
		c.Mix = cmp.Or(c.Mix, "account=1")
		if mix, err = load.ParseMix(c.Mix); err != nil {
			return nil, nil, 0, fmt.Errorf("--mix: %w", err)
		}
	}
	node, err = load.NewNode(c.URL)
	return node, mix, rate, err
}

// script makes up the requests.
func (c *loadCommand) script(ctx context.Context, node *load.Node, mix load.Mix) (load.Script, error) {
	paths := c.Path
	if mix != nil {
		known := load.Known{}
		if c.Keys != "" {
			keys, err := readNames(c.Keys)
			if err != nil {
				return nil, &usageError{fmt.Errorf("--keys: %w", err)}
			}
			known[load.Keys] = keys
		}
		if mix.Unknown(known) != "" {
			if err := node.Learn(ctx, known); err != nil {
				return nil, err
			}
		}
		if name := mix.Unknown(known); name != "" {
			return nil, fmt.Errorf("the server tells of nothing that %s can be asked for; --keys names accounts", name)
		}
		paths = mix.Paths(known, scriptRequests)
	}
	return load.NewScript(len(paths), func(dst []byte, i int) []byte {
		path := node.URL.Path + paths[i]
		if c.MinSlot > 0 {
			separator := "?"
			if strings.Contains(path, separator) {
				separator = "&"
			}
			path += fmt.Sprintf("%smin_slot=%d", separator, c.MinSlot)
		}
		return load.AppendGet(dst, node.URL.Host, path, load.AnyCoding)
	}), nil
}

// obey decides the rate of the one that was asked for, and says why it is what it is.
func (r *loadRun) obey(node *load.Node, asked float64) error {
	r.rate, r.why = asked, "--rate"
	if asked < 0 {
		r.rate, r.why = defaultRate, "the default"
	}
	switch {
	case node.Limit == 0:
		return nil
	case r.IgnoreLimits:
		r.why += fmt.Sprintf(", ignoring the node's limit of %d requests", node.Limit)
		return nil
	case node.Remaining < fewestRequests:
		return fmt.Errorf("the node allows this client only %d more requests until %s: wait, or use --ignore-limits", node.Remaining, node.Reset.Format(time.TimeOnly))
	}
	// The headers tell of the window with the fewest requests remaining; in the others more remain.
	allowed := float64(node.Remaining-2) / (r.Warmup + r.Duration).Seconds()
	if r.rate == 0 || r.rate > allowed {
		r.rate = allowed
		r.why = fmt.Sprintf("the node allows this client %d of %d requests until %s; see --ignore-limits", node.Remaining, node.Limit, node.Reset.Format(time.TimeOnly))
	}
	return nil
}
