package main

import (
	"context"

	"ledgerd/bench"
)

// allCommand runs the scenarios of all other commands.
type allCommand struct {
	loadFlags `embed:""`
	Accounts  int `help:"How many a ledger has that is held and recovered. The goals are for 10,000,000." default:"10000000"`
}

// Help lists the scenarios.
func (c *allCommand) Help() string { return list(bench.All(bench.FullAccounts)) }

func (c *allCommand) Run(ctx context.Context, streams *streams) error {
	f := accountFlags{c.loadFlags, c.Accounts}
	return f.run(ctx, streams, bench.All)
}

// resultsCommand writes the page of results from what was kept of earlier runs.
type resultsCommand struct {
	Page string `arg:"" help:"The page, beside which the folder of the results is: bench/RESULTS.md." type:"path"`
}

func (c *resultsCommand) Run(context.Context, *streams) error {
	results, err := bench.OpenResults(c.Page)
	if err != nil {
		return err
	}
	return results.WritePage(order())
}

// order is that of scenarios on a page.
func order() (names []string) {
	for _, s := range bench.All(bench.FullAccounts) {
		names = append(names, s.Name)
	}
	return names
}
