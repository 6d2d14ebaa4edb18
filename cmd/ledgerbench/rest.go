package main

import (
	"context"

	"ledgerd/bench"
)

// restFlags say how it is asked over REST.
type restFlags struct {
	Connections int     `help:"How many connections ask, 1 to 10,000, from several addresses of this machine." default:"64"`
	Pipeline    int     `help:"Requests on the way on each connection." default:"1" placeholder:"DEPTH"`
	KeepAlive   bool    `help:"Keep connections for the next request." default:"true" negatable:""`
	Rate        float64 `help:"Requests a second, each due at a time of its own; 0 is as many as are answered." default:"0"`
	Keys        string  `help:"Whether all accounts are asked for equally often (uniform), or some much more often than others (zipf)." enum:"uniform,zipf" default:"uniform"`
	Misses      float64 `help:"Share of requests for accounts that do not exist." default:"0"`
	Mix         bool    `help:"Ask for balances, several accounts at once, blocks, transactions and lists too."`
}

func (f *restFlags) options() (o bench.RESTOptions, err error) {
	o = bench.RESTOptions{
		Connections: f.Connections, Fresh: !f.KeepAlive, Rate: f.Rate,
		Zipf: f.Keys == "zipf", Misses: f.Misses, Mix: f.Mix,
	}
	if f.Pipeline != 1 {
		o.Depth = f.Pipeline
	}
	if err := o.Validate(); err != nil {
		return o, &usageError{err}
	}
	return o, nil
}

// restCommand asks over REST.
type restCommand struct {
	loadFlags `embed:""`
	restFlags `embed:""`
}

// Help lists the scenarios.
func (c *restCommand) Help() string { return list(bench.REST(bench.RESTOptions{})) }

func (c *restCommand) Run(ctx context.Context, streams *streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	return c.run(ctx, streams, bench.REST(o))
}
