package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/load"
	"ledgerd/httpd/client"
)

const (
	// defaultRate is how many requests a second are sent to a node that has no limits. A search begins with it.
	defaultRate = 1000
	// closedLoop is the value of --rate that has none, and search the one that is looked for.
	closedLoop = "max"
	search     = "search"
	// scriptRequests is how many different requests are made up.
	scriptRequests = 1 << 16
	// fewestRequests is how many a node must still allow to be loaded.
	fewestRequests = 10
	// defaultDuration, longestDuration: of a measurement, and of one that ends with its requests.
	defaultDuration, longestDuration = 10 * time.Second, 24 * time.Hour
)

// loadCommand asks a running server.
type loadCommand struct {
	reach
	Rate         string         `help:"Requests a second, each due at a time of its own whatever the responses take; max: each connection asks again when it is answered; search: the highest rate that meets --slo. Default: what the node's limits allow, at most 1000." placeholder:"N|max|search"`
	Connections  int            `short:"c" help:"How many connections ask." default:"16"`
	Requests     int            `short:"n" help:"End after so many requests." placeholder:"N"`
	Duration     *time.Duration `short:"d" help:"Of the measurement, or of each step of a search. Default: 10s, or until --requests were sent." placeholder:"DURATION"`
	Warmup       *time.Duration `help:"How long the same is asked before, without being counted. Default: 1s, 0s with --requests." placeholder:"DURATION"`
	Ramp         time.Duration  `help:"For so long the rate, or with --rate=max the number of connections that ask, rises from nothing." placeholder:"DURATION"`
	Arrivals     string         `help:"When requests are due: ${enum}. Poisson is at random, as those of many clients are." enum:"even,poisson" default:"even"`
	Path         []string       `help:"Ask for this path of the interface, such as /blocks/latest, or a whole URL of the server, in which * is one of --keys; several take turns. Default: /account/*." sep:"none" placeholder:"PATH|URL" xor:"what"`
	RPC          []string       `help:"Call this method of JSON-RPC at the URL, with its parameters if it takes some, in which * is one of --keys; several take turns." name:"rpc" sep:"none" placeholder:"METHOD [PARAMS]" xor:"what"`
	Keys         string         `help:"Ask for these accounts: a file with a base58 key a line, or keys with commas between them. Default: accounts that the server lists." placeholder:"FILE|LIST"`
	HTTP2        bool           `name:"http2" help:"Speak HTTP/2, one request at a time over each connection: with https:// a server that agrees to it, with http:// one that expects it."`
	IgnoreLimits bool           `help:"Ask more than the node allows this client. Without it the load stays below, and ends at the first 429."`
	Verify       bool           `group:"Judgement:" help:"Read every response: one that is not JSON, tells of a call that failed, or is of an older slot than the one before on its connection, is wrong, and the command fails."`
	SLO          string         `group:"Judgement:" name:"slo" help:"Fail unless this holds. What failed or was not sent counts as never answered." placeholder:"p99=5ms,max=1s,failed=0.1%"`
	JSON         string         `group:"Output:" name:"json" help:"Write the figures here; - is the standard output, as for the next." placeholder:"FILE" type:"path"`
	CSV          string         `group:"Output:" name:"csv" help:"Write the figures of each second here." placeholder:"FILE" type:"path"`

	slo    load.SLO
	pace   load.Pace
	warmup time.Duration
	paths  []string // as they are asked for, but for keys
	calls  []string // of JSON-RPC, as they are sent
	query  string   // of the URL where JSON-RPC is
	keys   []string // nil: none was named, nor learned yet
	why    string   // the rate is what it is
	counts *load.Counts
	steps  []step // of a search
}

// Run finds out what to ask, asks, and reports. Whatever comes of the requests is a figure, and an error only where it is wrong or misses
// the objectives.
func (c *loadCommand) Run(ctx context.Context, streams *streams) (err error) {
	if err := c.parse(); err != nil {
		return &usageError{err}
	}
	out, err := openOutput(streams, c.JSON, c.CSV)
	if err != nil {
		return &usageError{err}
	}
	defer func() { err = errors.Join(err, out.close()) }()
	if err := c.find(ctx); err != nil {
		return err
	}
	config, err := c.config(ctx)
	if err != nil {
		return err
	}
	if err := c.obey(); err != nil {
		return err
	}
	l := load.New(config)
	defer l.Close()
	if err := c.measure(ctx, out, l); err != nil {
		return err
	}
	if err := c.report(out); err != nil {
		return err
	}
	return c.judge()
}

// parse checks the flags.
func (c *loadCommand) parse() (err error) {
	if c.HTTP2 {
		c.speaks = load.HTTP2()
	}
	if c.RPC != nil { // rented endpoints have a key there, which no figure is to show
		c.URL, c.query, _ = strings.Cut(c.URL, "?")
	}
	if err := c.reach.parse(); err != nil {
		return err
	}
	warmup, length := time.Second, defaultDuration
	if c.Requests > 0 {
		warmup, length = 0, longestDuration
	}
	c.warmup = *cmp.Or(c.Warmup, &warmup)
	c.pace = load.Pace{Ramp: c.Ramp, Poisson: c.Arrivals == "poisson", Requests: c.Requests, Length: *cmp.Or(c.Duration, &length)}
	if c.Connections < 1 || c.Connections > 10_000 {
		return errors.New("--connections must be 1 to 10,000")
	}
	if c.pace.Length <= 0 || c.warmup < 0 || c.Ramp < 0 || c.Requests < 0 {
		return errors.New("--duration must be above 0, and --warmup, --ramp and --requests not below")
	}
	if c.JSON == stdout && c.CSV == stdout {
		return errors.New("one of --json and --csv may be the standard output")
	}
	if c.SLO != "" {
		if c.slo, err = load.ParseSLO(c.SLO); err != nil {
			return fmt.Errorf("--slo: %w", err)
		}
	}
	if err := c.parseRate(); err != nil {
		return err
	}
	return c.parseWhat()
}

// parseRate reads how fast is asked.
func (c *loadCommand) parseRate() (err error) {
	c.pace.Rate, c.why = defaultRate, "--rate"
	switch c.Rate {
	case "":
		c.why = "the default"
	case closedLoop:
		c.pace.Rate = 0
	case search:
		if c.slo == nil || c.Requests > 0 || c.Ramp > 0 {
			return errors.New("--rate=search needs --slo, and takes neither --requests nor --ramp")
		}
	default:
		if c.pace.Rate, err = strconv.ParseFloat(c.Rate, 64); err != nil || !(c.pace.Rate > 0) || c.pace.Rate > load.MostRate {
			return fmt.Errorf("--rate=%s is not %s, %s or a number up to 10,000,000", c.Rate, closedLoop, search)
		}
	}
	return nil
}

// find finds the server, which must have the paths that were named. Another server than ledgerd may be asked for paths: it has no limits.
func (c *loadCommand) find(ctx context.Context) error {
	for _, path := range c.paths {
		if hasPlace(path) {
			continue
		}
		if err := c.try(ctx, path, ""); err != nil {
			return err
		}
	}
	for i := range c.RPC {
		if err := c.try(ctx, c.rpcPath(), c.calls[i]); err != nil {
			return err
		}
	}
	_, err := c.node.Status(ctx) // tells the limits
	refused, ok := errors.AsType[*client.StatusError](err)
	switch limited := ok && refused.Status == http.StatusTooManyRequests; {
	case err == nil, limited && c.IgnoreLimits && c.node.Budget().Limit > 0, !limited && !c.asksForKeys():
		return nil
	}
	return fmt.Errorf("cannot ask %s/status: %w", c.base, err)
}

// obey takes the rate that was asked for, or the one that the node allows, and keeps why it is that.
func (c *loadCommand) obey() error {
	node := c.node.Budget()
	allowed := node.Remaining - 2 // in the window with the fewest requests remaining, of which the headers tell
	if shares := c.shares(c.Connections); shares > 1 {
		allowed = int(float64(allowed) * shares * 3 / 4) // connections do not share requests evenly
	}
	until := node.Reset.Format(time.TimeOnly)
	rate := float64(allowed) / (c.warmup + c.pace.Length).Seconds()
	switch {
	case node.Limit == 0:
	case c.IgnoreLimits:
		c.why += fmt.Sprintf(", ignoring the node's limit of %d requests", node.Limit)
	case node.Remaining < fewestRequests:
		return fmt.Errorf("the node allows this client only %d more requests until %s: wait, or use --ignore-limits", node.Remaining, until)
	case c.Rate == search:
		return fmt.Errorf("the node allows this client %d requests until %s, which is no room for a search; see --ignore-limits", node.Remaining, until)
	case c.Requests > 0 && c.warmup == 0 && c.Requests <= allowed:
	case c.Requests > 0 && c.Duration == nil && (c.pace.Rate == 0 || c.pace.Rate > rate): // the rate would be of a day
		what := fmt.Sprintf("--requests=%d", c.Requests)
		if c.warmup > 0 {
			what += fmt.Sprintf(" after a warm-up of %v", c.warmup)
		}
		return fmt.Errorf("the node allows this client %d requests until %s, which is no room for %s; see --duration and --ignore-limits", node.Remaining, until, what)
	case c.pace.Rate == 0 || c.pace.Rate > rate:
		c.pace.Rate = rate
		c.why = fmt.Sprintf("the node allows this client %d of %d requests until %s; see --ignore-limits", node.Remaining, node.Limit, until)
	}
	return nil
}
