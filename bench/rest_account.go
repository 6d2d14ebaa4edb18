package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ledgerd/bench/peer"
)

// restUpdates is how many accounts a block updates: a few, so that not all accounts look the same.
const restUpdates = 100

// account asks ledgerd and its peers in turns.
func (r *restRun) account(ctx context.Context) error {
	if err := r.besidePeers(ctx, peer.RESTPeers); err != nil {
		return err
	}
	if r.o.Rate == 0 && r.usual() {
		r.goals("ledgerd",
			Goal{What: answersOf("bare"), Limit: 0.95, Least: true},
			Goal{What: answersOf("nginx"), Limit: 0.9, Least: true},
			Goal{What: answersOf("webdis"), Limit: 1.2, Least: true},
			Goal{What: answersOf("nethttp"), Limit: 2, Least: true},
			Goal{What: costOf("bare"), Limit: 1.15},
		)
	}
	return nil
}

// paced asks ledgerd and the bare handler in turns, at a rate that leaves both time.
func (r *restRun) paced(ctx context.Context) error {
	if r.o.Rate == 0 {
		r.o.Rate = float64(r.env.Scaled(restPace))
	}
	if err := r.besidePeers(ctx, []peer.RESTPeer{peer.Bare}); err != nil {
		return err
	}
	if r.usual() {
		r.goals("ledgerd",
			Goal{What: latencyOf("p50", "bare"), Limit: 1.25},
			Goal{What: latencyOf("p99", "bare"), Limit: 1.25},
			Goal{What: neverSent, Limit: 0},
		)
	}
	return nil
}

// usual reports whether nothing but a rate was said about how it is asked. Goals are for that.
func (r *restRun) usual() bool {
	o := r.o
	o.Rate = 0
	return o == RESTOptions{Connections: restConnections}
}

// besidePeers asks ledgerd and those peers in turns. What the load gets from who answers without
// looking is its own ceiling.
func (r *restRun) besidePeers(ctx context.Context, peers []peer.RESTPeer) (err error) {
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
		subjects = append(subjects, r.peers(ctx, peers, answer, accounts)...)
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

// turns measures all subjects in each round, each round from another one on, and compares the first
// with the others. A peer that fails is left out from then on.
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
			case err != nil && (s == subjects[0] || s.name == "ledgerd"):
				return fmt.Errorf("%s: %w", s.name, err)
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

// compare notes how the first subject did beside the others in the same round.
func (r *restRun) compare(subjects []*restSubject, found map[string]*restMeasured) {
	own, row := found[subjects[0].name], r.result.Row(subjects[0].name)
	for _, s := range subjects[1:] {
		if theirs := found[s.name]; theirs != nil {
			if r.o.Rate == 0 {
				row.Add(answersOf(s.name), "×", own.perSecond()/theirs.perSecond())
			} else {
				row.Add(latencyOf("p50", s.name), "×", ratio(float64(own.Latency.Quantile(0.5)), float64(theirs.Latency.Quantile(0.5))))
				row.Add(latencyOf("p99", s.name), "×", ratio(float64(own.Latency.Quantile(0.99)), float64(theirs.Latency.Quantile(0.99))))
			}
			if own.costed {
				row.Add(costOf(s.name), "×", ratio(microseconds(own.server), microseconds(theirs.server)))
			}
		}
	}
}

func answersOf(peer string) string { return "requests, of " + peer + "'s" }
func costOf(peer string) string    { return "CPU of the server, of " + peer + "'s" }

func latencyOf(what, peer string) string { return what + ", of " + peer + "'s" }

// goals holds several figures of a subject against their limits.
func (r *restRun) goals(subject string, all ...Goal) {
	for _, g := range all {
		r.goal(subject, g)
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

// restClients are for how many a proxy asks.
const restClients = 256

// proxied asks two servers in turns: one as its clients do, the other as a proxy that it trusts, which
// says for which of its clients it asks.
func (r *restRun) proxied(ctx context.Context) error {
	plain, accounts, kill, err := r.start(ctx, "ledgerd")
	if err != nil {
		return err
	}
	defer kill()
	proxied, killProxied, err := r.startProxied(ctx, accounts)
	if err != nil {
		return err
	}
	defer killProxied()
	if err := r.turns(ctx, []*restSubject{proxied, plain}); err != nil {
		return err
	}
	if r.o.Rate == 0 && r.usual() {
		r.goal(proxied.name, Goal{What: answersOf(plain.name), Limit: 0.95, Least: true})
	}
	r.result.Notes = append(r.result.Notes, fmt.Sprintf("Through a proxy: each request names one of %d clients in X-Forwarded-For.", restClients))
	return errors.Join(proxied.stop(), plain.stop())
}

// startProxied starts a server that is asked by a proxy.
func (r *restRun) startProxied(ctx context.Context, accounts int) (s *restSubject, kill func(), err error) {
	rig, err := r.startLedgerd(ctx, accounts, min(restUpdates, accounts), "--trusted-proxies", "127.0.0.0/8")
	if err != nil {
		return nil, nil, err
	}
	s, truth, err := r.ledgerdSubject("through a proxy", rig)
	if err != nil {
		rig.Kill()
		return nil, nil, err
	}
	s.write = func(dst []byte, a restAsk) []byte { return forwarded(truth.write(dst, a), a.index%restClients) }
	r.prepare(s, accounts)
	return s, rig.Kill, nil
}

// forwarded adds to the request that dst ends with for which client it is asked.
func forwarded(dst []byte, client uint32) []byte {
	return fmt.Appendf(dst[:len(dst)-len(lineEnd)], "X-Forwarded-For: 198.51.100.%d\r\n\r\n", client)
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
