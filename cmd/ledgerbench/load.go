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
	JSON         string        `group:"Output:" name:"json" help:"Write the figures here." placeholder:"FILE" type:"path"`
	HDR          string        `group:"Output:" name:"hdr" help:"Write the latencies of each second here, as a log of HdrHistogram." placeholder:"FILE" type:"path"`

	node   *load.Node
	mix    load.Mix
	known  load.Known
	rate   float64 // 0: closed loop
	why    string  // the rate is what it is
	counts *load.Counts
}

// Run finds out what to ask, asks, and reports. Whatever comes of the requests is a figure and no error.
func (c *loadCommand) Run(ctx context.Context, streams *streams) error {
	if err := c.parse(); err != nil {
		return &usageError{err}
	}
	if err := c.node.Find(ctx); err != nil && !(c.IgnoreLimits && c.node.Budget().Limit > 0) {
		return err
	}
	config := load.Config{Connections: c.Connections, StopAt429: !c.IgnoreLimits, Address: c.node.Address}
	var err error
	if config.Script, err = c.script(ctx); err != nil {
		return err
	}
	if config.Rate, err = c.obey(); err != nil {
		return err
	}
	l := load.New(config)
	defer l.Close()
	if err := c.measure(ctx, streams.err, l); err != nil {
		return err
	}
	return c.report(streams.out)
}

// parse checks the flags. The rate is below 0 if none was named.
func (c *loadCommand) parse() (err error) {
	c.rate, c.why = defaultRate, "the default"
	if c.Rate == closedLoop {
		c.rate, c.why = 0, "--rate"
	} else if c.Rate != "" {
		if c.rate, err = strconv.ParseFloat(c.Rate, 64); err != nil || !(c.rate >= 0) || c.rate > 1e7 {
			return fmt.Errorf("--rate=%s is not %s or a number up to 10,000,000", c.Rate, closedLoop)
		}
		c.why = "--rate"
	}
	if c.Connections < 1 || c.Connections > 10_000 {
		return errors.New("--connections must be 1 to 10,000")
	}
	if c.Duration <= 0 || c.Warmup < 0 {
		return errors.New("--duration must be above 0, and --warmup not below")
	}
	for _, path := range c.Path {
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " \r\n") {
			return fmt.Errorf("--path=%q must begin with / and hold no spaces", path)
		}
	}
	if len(c.Path) == 0 {
		c.Mix = cmp.Or(c.Mix, "account=1")
		if c.mix, err = load.ParseMix(c.Mix); err != nil {
			return fmt.Errorf("--mix: %w", err)
		}
	}
	c.known = load.Known{}
	if c.Keys != "" {
		if c.known["keys"], err = readNames(c.Keys); err != nil {
			return fmt.Errorf("--keys: %w", err)
		}
	}
	if c.node, err = load.NewNode(c.URL); err == nil && c.node.URL.Scheme == "https" {
		err = fmt.Errorf("%s speaks TLS, which a load does not: load a node without, at http://HOST:PORT", c.node.URL.Host)
	}
	return err
}

// script makes up the requests.
func (c *loadCommand) script(ctx context.Context) (load.Script, error) {
	paths := c.Path
	if c.mix != nil {
		if c.mix.Unknown(c.known) != "" {
			if err := c.node.Learn(ctx, c.known); err != nil {
				return nil, err
			}
		}
		if name := c.mix.Unknown(c.known); name != "" {
			return nil, fmt.Errorf("the server tells of nothing that %s can be asked for; --keys names accounts", name)
		}
		paths = c.mix.Paths(c.known, scriptRequests)
	}
	return load.NewScript(len(paths), func(dst []byte, i int) []byte {
		path := c.node.URL.Path + paths[i]
		if c.MinSlot > 0 {
			separator := "?"
			if strings.Contains(path, separator) {
				separator = "&"
			}
			path += fmt.Sprintf("%smin_slot=%d", separator, c.MinSlot)
		}
		return load.AppendGet(dst, c.node.URL.Host, path)
	}), nil
}

// obey returns the rate that was asked for, or the one that the node allows, and keeps why it is that.
func (c *loadCommand) obey() (float64, error) {
	node := c.node.Budget()
	// The headers tell of the window with the fewest requests remaining; in the others more remain.
	allowed := float64(node.Remaining-2) / (c.Warmup + c.Duration).Seconds()
	switch {
	case node.Limit == 0:
	case c.IgnoreLimits:
		c.why += fmt.Sprintf(", ignoring the node's limit of %d requests", node.Limit)
	case node.Remaining < fewestRequests:
		return 0, fmt.Errorf("the node allows this client only %d more requests until %s: wait, or use --ignore-limits", node.Remaining, node.Reset.Format(time.TimeOnly))
	case c.rate == 0 || c.rate > allowed:
		c.rate = allowed
		c.why = fmt.Sprintf("the node allows this client %d of %d requests until %s; see --ignore-limits", node.Remaining, node.Limit, node.Reset.Format(time.TimeOnly))
	}
	return c.rate, nil
}
