package bench

import (
	"context"
	"errors"
	"fmt"
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
	points, lists, page, kill, err := r.startLists(ctx)
	if err != nil {
		return err
	}
	defer kill()
	for round := range r.env.Rounds {
		if err := r.listsRound(ctx, points, lists, page); err != nil {
			return err
		}
		row, beside := r.result.Row("lists"), r.result.Row("accounts beside lists")
		r.env.Say("lists round %d: %.2f M records/s; p99 of accounts beside lists %.2f ms, %.2f of that without", round+1,
			row.last("records"), beside.last("p99"), beside.last("p99, of no lists"))
	}
	r.goal("lists", Goal{What: "records", Limit: 1.5, Least: true})
	r.goal("accounts beside lists", Goal{What: "p99, of no lists", Limit: 1.3})
	return points.stop()
}

// startLists returns who is asked for accounts, and the same for lists of so many accounts.
func (r *restRun) startLists(ctx context.Context) (points, lists *restSubject, page int, kill func(), err error) {
	if r.env.Live != nil {
		points, lists, page, err = r.liveLists(ctx)
		return points, lists, page, func() {}, err
	}
	accounts := max(r.env.Scaled(restAccounts), restListPage*feed.Programs)
	rig, err := r.startLedgerd(ctx, accounts, restUpdates)
	if err != nil {
		return nil, nil, 0, nil, err
	}
	points, known, err := r.ledgerdSubject("accounts", rig)
	if err != nil {
		rig.Kill()
		return nil, nil, 0, nil, err
	}
	pages := *known
	pages.page = restListPage
	lists, err = points.asLists(pages.write, pages.check, feed.Programs)
	if err != nil {
		rig.Kill()
		return nil, nil, 0, nil, err
	}
	return points, lists, restListPage, rig.Kill, nil
}

// asLists returns the same subject asked for lists of so many programs in turns.
func (s *restSubject) asLists(write func([]byte, restAsk) []byte, check func(restAsk, int, []byte, []byte) error, programs int) (*restSubject, error) {
	lists := *s
	lists.write, lists.check = write, check
	lists.script = newScript(programs, func(c *rand.Rand) restAsk { return restAsk{askProgram, uint32(c.IntN(programs))} }, write)
	for i := range programs { // what is longer than a read is not looked at later
		if _, _, err := lists.fetch(restAsk{askProgram, uint32(i)}); err != nil {
			return nil, err
		}
	}
	return &lists, nil
}

// liveLists does the same at a server that runs already: it asks for the programs that fill a page
// or, where there is none, for the one with the most accounts.
func (r *restRun) liveLists(ctx context.Context) (points, lists *restSubject, page int, err error) {
	points, known, err := r.liveSubject(ctx, "accounts")
	if err != nil {
		return nil, nil, 0, err
	}
	if len(known.programs) == 0 {
		return nil, nil, 0, errors.New("no program is known that owns accounts")
	}
	pages := *known
	full := 0
	for full < len(pages.programs) && pages.programs[full].accounts >= restListPage {
		full++
	}
	pages.page = min(restListPage, pages.programs[0].accounts)
	pages.programs = pages.programs[:max(1, full)]
	if full == 0 {
		r.result.Notes = append(r.result.Notes, fmt.Sprintf("No program is known with %d accounts; lists are of %d.", restListPage, pages.page))
	}
	lists, err = points.asLists(pages.write, pages.check, len(pages.programs))
	return points, lists, pages.page, err
}

func (r *restRun) listsRound(ctx context.Context, points, lists *restSubject, page int) error {
	run := *r
	run.o = RESTOptions{Connections: restListConnections}
	most, err := run.measure(ctx, lists)
	if err != nil {
		return err
	}
	row := r.result.Row("lists")
	most.note(row, 0)
	row.Add("records", "M/s", most.perSecond()*float64(page)/1e6)
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
