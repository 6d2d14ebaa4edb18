package main

import (
	"context"

	"ledgerd/bench"
)

// mixedCommand asks while much is written.
type mixedCommand struct {
	loadFlags `embed:""`
	restFlags `embed:""`
}

// Help says what is done.
func (c *mixedCommand) Help() string { return list(bench.Mixed(bench.RESTOptions{})) }

func (c *mixedCommand) Run(ctx context.Context, streams *streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	return c.run(ctx, streams, bench.Mixed(o))
}
