package main

import (
	"context"

	"ledgerd/bench"
)

// helperCommand is what scenarios start this program as, for work that is not to disturb their
// clock.
type helperCommand struct {
	Storm stormCommand `cmd:"" help:"Be the clients of a storm."`
}

type stormCommand struct{}

func (*stormCommand) Run(ctx context.Context, streams *streams) error {
	return bench.StormClients(ctx, streams.in, streams.out)
}
