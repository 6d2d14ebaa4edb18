package main

import (
	"context"
	"errors"

	"ledgerd/bench"
)

// ingestCommand has a ledger read from a file.
type ingestCommand struct {
	loadFlags `embed:""`
}

// Help lists the scenarios.
func (c *ingestCommand) Help() string { return list(bench.Ingest()) }

func (c *ingestCommand) Run(ctx context.Context, streams *streams) error {
	return c.run(ctx, streams, bench.Ingest())
}

// clusterCommand has several nodes share a log.
type clusterCommand struct {
	loadFlags `embed:""`
}

// Help lists the scenarios.
func (c *clusterCommand) Help() string { return list(bench.Cluster()) }

func (c *clusterCommand) Run(ctx context.Context, streams *streams) error {
	return c.run(ctx, streams, bench.Cluster())
}

// accountFlags are those of commands that load a server with accounts alone.
type accountFlags struct {
	loadFlags `embed:""`
	Accounts  int `help:"How many there are." default:"1000000"`
}

// run runs scenarios of so many accounts.
func (f *accountFlags) run(ctx context.Context, streams *streams, scenarios func(accounts int) []bench.Scenario) error {
	if f.Accounts < 1 {
		return &usageError{errors.New("--accounts must be above 0")}
	}
	return f.loadFlags.run(ctx, streams, scenarios(f.Accounts))
}

// recoverCommand has a ledger recovered.
type recoverCommand struct {
	accountFlags `embed:""`
}

// Help lists the scenarios.
func (c *recoverCommand) Help() string { return list(bench.Recover(c.Accounts)) }

func (c *recoverCommand) Run(ctx context.Context, streams *streams) error {
	return c.run(ctx, streams, bench.Recover)
}

// memoryCommand has a ledger held.
type memoryCommand struct {
	accountFlags `embed:""`
}

// Help lists the scenarios.
func (c *memoryCommand) Help() string { return list(bench.Memory(c.Accounts)) }

func (c *memoryCommand) Run(ctx context.Context, streams *streams) error {
	return c.run(ctx, streams, bench.Memory)
}
