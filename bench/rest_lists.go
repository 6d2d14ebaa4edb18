package bench

import (
	"context"
	"errors"
	"math/rand/v2"

	"ledgerd/bench/feed"
)

const (
	restListPage        = 1000 // accounts of a program
	restListConnections = 4
	// restListRate is how many lists are asked for in a second while accounts are asked for: so
	// many that one of a hundred accounts comes while a list is made, and few enough for both.
	restListRate = 50
	// restPointRate is how many accounts are asked for in a second then.
	restPointRate = 5000
)

// lists asks for as many lists as are answered, then for accounts at a rate, without lists and
// with some.
func (r *restRun) lists(ctx context.Context) error {
	accounts := max(r.env.Scaled(restAccounts), restListPage*feed.Programs)
	rig, err := r.startLedgerd(ctx, accounts, restUpdates)
	if err != nil {
		return err
	}
	defer rig.Kill()
	points, known, err := r.ledgerdSubject("accounts", rig)
	if err != nil {
		return err
	}
	pages := *known
	pages.page = restListPage
	lists := *points
	lists.write, lists.check = pages.write, pages.check
	lists.script = newScript(feed.Programs, func(c *rand.Rand) restAsk { return restAsk{askProgram, uint32(c.IntN(feed.Programs))} }, pages.write)
	for i := range uint32(feed.Programs) { // what is longer than a read is not looked at later
		if _, _, err := lists.fetch(restAsk{askProgram, i}); err != nil {
			return err
		}
	}
	for round := range r.env.Rounds {
		if err := r.listsRound(ctx, points, &lists); err != nil {
			return err
		}
		row, beside := r.result.Row("lists"), r.result.Row("accounts beside lists")
		r.env.Say("lists round %d: %.2f M records/s; p99 of accounts beside lists %.2f ms, %.2f of that without", round+1,
			row.last("records"), beside.last("p99"), beside.last("p99, of no lists"))
	}
	r.goal("lists", Goal{What: "records", Limit: 1.5, Least: true})
	r.goal("accounts beside lists", Goal{What: "p99, of no lists", Limit: 1.3})
	return rig.Stop()
}

func (r *restRun) listsRound(ctx context.Context, points, lists *restSubject) error {
	run := *r
	run.o = RESTOptions{Connections: restListConnections}
	most, err := run.measure(ctx, lists)
	if err != nil {
		return err
	}
	row := r.result.Row("lists")
	most.note(row, 0)
	row.Add("records", "M/s", most.perSecond()*restListPage/1e6)
	run.o = RESTOptions{Connections: r.o.Connections, Rate: restPointRate}
	alone, err := run.measure(ctx, points)
	if err != nil {
		return err
	}
	alone.note(r.result.Row("accounts"), restPointRate)

	// The lists begin before the accounts are asked for, and go on until that is over.
	besides := run
	besides.o = RESTOptions{Connections: restListConnections, Rate: restListRate}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	asked := make(chan error, 1)
	go func() { asked <- besides.keepAsking(asking, lists) }()
	both, err := run.measure(ctx, points)
	stop()
	if err = errors.Join(err, <-asked); err != nil {
		return err
	}
	row = r.result.Row("accounts beside lists")
	both.note(row, restPointRate)
	row.Add("p99, of no lists", "×", ratio(float64(both.Latency.Quantile(0.99)), float64(alone.Latency.Quantile(0.99))))
	return nil
}

// keepAsking asks until ctx ends.
func (r *restRun) keepAsking(ctx context.Context, s *restSubject) error {
	l, err := r.connect(ctx, s)
	if err != nil {
		return err
	}
	defer l.close()
	for {
		counts, err := l.phase(ctx, r.env.Duration/restWarmup)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case counts.Failed > 0 || counts.Statuses[200] != counts.answered():
			return errors.New("a list was not answered")
		}
	}
}
