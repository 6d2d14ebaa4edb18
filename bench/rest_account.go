package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// restUpdates is how many accounts a block updates: a few, so that not all accounts look the same.
const restUpdates = 100

// account asks ledgerd and its peers in turns. What the load gets from who answers without
// looking is its own ceiling.
func (r *restRun) account(ctx context.Context) (err error) {
	own, accounts, kill, err := r.start(ctx, "ledgerd")
	if err != nil {
		return err
	}
	defer kill()
	answer, err := answerOf(own)
	if err != nil {
		return err
	}
	subjects := []*restSubject{own}
	if !r.o.Mix {
		subjects = append(subjects, r.peers(ctx, answer, accounts)...)
	}
	defer func() {
		for _, s := range subjects {
			err = errors.Join(err, s.stop())
		}
	}()
	for _, s := range subjects[1:] {
		r.prepare(s, accounts)
	}
	if err := r.turns(ctx, subjects); err != nil {
		return err
	}
	r.accountGoals()
	r.result.Notes = append(r.result.Notes,
		"CPU of a request is the kernel's count of all threads of the server, from the first request to the last answer.",
		"canned answers without looking at what it is asked: what it is asked in a second is the most that this load can ask here.")
	return nil
}

// start starts the server that is asked, or finds out what can be asked of the one that runs
// already. It returns how many accounts there are to ask for, and what ends the server if it is
// ours; a subject that was stopped needs that no more.
func (r *restRun) start(ctx context.Context, name string) (s *restSubject, accounts int, kill func(), err error) {
	if r.env.Live != nil {
		s, known, err := r.liveSubject(ctx, name)
		if err != nil {
			return nil, 0, nil, err
		}
		return s, len(known.keys), func() {}, nil
	}
	rig, err := r.startLedgerd(ctx, r.env.Scaled(restAccounts), min(restUpdates, r.env.Scaled(restAccounts)))
	if err != nil {
		return nil, 0, nil, err
	}
	s, truth, err := r.ledgerdSubject(name, rig)
	if err != nil {
		rig.Kill()
		return nil, 0, nil, err
	}
	return s, truth.ledger.Accounts, rig.Kill, nil
}

// turns measures all subjects in each round, each round from another one on. A peer that fails
// is left out from then on.
func (r *restRun) turns(ctx context.Context, subjects []*restSubject) error {
	failed := map[string]bool{}
	for round := range r.env.Rounds {
		found := map[string]*restMeasured{}
		for i := range subjects {
			s := subjects[(i+round)%len(subjects)]
			if failed[s.name] {
				continue
			}
			m, err := r.measure(ctx, s)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil && s.name == "ledgerd":
				return fmt.Errorf("ledgerd: %w", err)
			case err != nil:
				failed[s.name] = true
				r.leaveOut(s.name, err)
				continue
			}
			found[s.name] = m
			m.note(r.result.Row(s.name), r.o.Rate)
			r.env.Say("%s round %d: %s answers %.1f k/s at %s; the load takes %.2f µs", r.result.Scenario, round+1, s.name,
				m.perSecond()/1e3, m.cost(), microseconds(m.load))
		}
		r.compare(subjects, found)
	}
	return nil
}

// compare notes how ledgerd did beside the others in the same round.
func (r *restRun) compare(subjects []*restSubject, found map[string]*restMeasured) {
	own, row := found["ledgerd"], r.result.Row("ledgerd")
	for _, s := range subjects[1:] {
		if theirs := found[s.name]; theirs != nil {
			row.Add(answersOf(s.name), "×", own.perSecond()/theirs.perSecond())
			if own.costed {
				row.Add(costOf(s.name), "×", ratio(microseconds(own.server), microseconds(theirs.server)))
			}
		}
	}
}

func answersOf(peer string) string { return "requests, of " + peer + "'s" }
func costOf(peer string) string    { return "CPU of the server, of " + peer + "'s" }

// accountGoals are for what is asked when nothing else is said.
func (r *restRun) accountGoals() {
	if r.o != (RESTOptions{Connections: restConnections}) {
		return
	}
	for _, g := range []Goal{
		{What: answersOf("bare"), Limit: 0.95, Least: true},
		{What: answersOf("nginx"), Limit: 0.9, Least: true},
		{What: answersOf("webdis"), Limit: 1.4, Least: true},
		{What: answersOf("nethttp"), Limit: 2, Least: true},
		{What: costOf("bare"), Limit: 1.15},
	} {
		r.goal("ledgerd", g)
	}
}

// goal holds the median of the figure that the goal is named after against its limit, if that
// was measured. Goals are for servers of our own: what runs elsewhere has others.
func (r *restRun) goal(subject string, g Goal) {
	if f := r.result.Row(subject).figure(g.What); len(f.Values) > 0 && r.env.Live == nil {
		g.Value = f.Median()
		if subject != "ledgerd" {
			g.What = subject + ": " + g.What
		}
		r.result.Goals = append(r.result.Goals, g)
	}
}

// mix is account with other endpoints between, which nobody else here has.
func (r *restRun) mix(ctx context.Context) error {
	r.o.Mix = true
	return r.account(ctx)
}

// pipelined asks the same server one at a time and many at a time, in turns.
func (r *restRun) pipelined(ctx context.Context) error {
	r.o.Fresh, r.o.Rate = false, 0
	s, _, kill, err := r.start(ctx, "ledgerd")
	if err != nil {
		return err
	}
	defer kill()
	depth := max(r.o.Depth, restDepth)
	if r.o.Depth > 1 {
		depth = r.o.Depth
	}
	names := map[int]string{1: "one at a time", depth: fmt.Sprintf("%d on the way", depth)}
	for round := range r.env.Rounds {
		found := map[int]*restMeasured{}
		order := []int{1, depth}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, r.o.Depth = range order {
			m, err := r.measure(ctx, s)
			if err != nil {
				return err
			}
			found[r.o.Depth] = m
			m.note(r.result.Row(names[r.o.Depth]), 0)
			r.env.Say("pipelined round %d: %s: %.1f k/s", round+1, names[r.o.Depth], m.perSecond()/1e3)
		}
		r.result.Row(names[depth]).Add("requests, of one at a time", "×", found[depth].perSecond()/found[1].perSecond())
	}
	r.goal(names[depth], Goal{What: "requests, of one at a time", Limit: 4, Least: true})
	return s.stop()
}

// The sizes of ledgers that are compared.
const (
	restFew  = 100_000
	restMany = 10_000_000
)

// size asks two servers in turns, of which one holds a hundred times as many accounts.
func (r *restRun) size(ctx context.Context) error {
	var subjects []*restSubject
	for _, accounts := range []int{r.env.Scaled(restFew), r.env.Scaled(restMany)} {
		rig, err := r.startLedgerd(ctx, accounts, min(restUpdates, accounts))
		if err != nil {
			return err
		}
		defer rig.Kill()
		s, _, err := r.ledgerdSubject(numbers(float64(accounts))[0]+" accounts", rig)
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	few, many := subjects[0], subjects[1]
	for round := range r.env.Rounds {
		for i := range subjects {
			s := subjects[(i+round)%2]
			m, err := r.measure(ctx, s)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			m.note(r.result.Row(s.name), r.o.Rate)
			r.env.Say("size round %d: %s: %.1f k/s at %.2f µs", round+1, s.name, m.perSecond()/1e3, microseconds(m.server))
		}
		cost := func(s *restSubject) float64 { return r.result.Row(s.name).last("CPU of the server") }
		r.result.Row(many.name).Add("CPU of the server, of that with few", "×", ratio(cost(many), cost(few)))
	}
	r.goal(many.name, Goal{What: "CPU of the server, of that with few", Limit: 1.15})
	return errors.Join(few.stop(), many.stop())
}
