package bench

import (
	"context"
	"errors"

	"ledgerd/bench/feed"
	"ledgerd/bench/report"
)

const (
	// restPace is how many requests are due in a second where that is fixed: so few that every peer has time for them.
	restPace = 30_000
	// restDepth is how many requests are in flight on each connection where pipelining is measured.
	restDepth = 16
	// The sizes of ledgers that are compared.
	restFew  = 100_000
	restMany = 10_000_000
)

// clientNote discloses in which shape requests are, and from where.
const clientNote = "every server is asked with the same five header fields, as python-requests sends them, over 64 connections from 16 loopback addresses; " +
	"ledgerd counts each address against its rate limits, and refuses none; one response of 256 is verified"

func runAccount(ctx context.Context, r *Run) error { return besidePeers(ctx, r, 0) }

func runPaced(ctx context.Context, r *Run) error {
	return besidePeers(ctx, r, float64(r.Scaled(restPace)))
}

// besidePeers asks ledgerd and its peers in turns.
func besidePeers(ctx context.Context, r *Run, rate float64) error {
	r.Note(clientNote)
	g, own, err := startREST(ctx, r, r.Scaled(restAccounts), restUpdates)
	if err != nil {
		return err
	}
	subjects := []*restSubject{own}
	if r.Peers {
		if subjects, err = withPeers(ctx, r, g, subjects); err != nil {
			return err
		}
	}
	for _, s := range subjects {
		s.load.Rate = rate
	}
	return roundsOf(ctx, r, subjects...)
}

// roundsOf measures subjects in turns.
func roundsOf(ctx context.Context, r *Run, subjects ...*restSubject) error {
	return turns(r, subjects, func(s *restSubject) error { return s.round(ctx, r) })
}

// runPipelined asks the same server one at a time and many at a time, in turns.
func runPipelined(ctx context.Context, r *Run) error {
	r.Note(clientNote)
	_, own, err := startREST(ctx, r, r.Scaled(restAccounts), restUpdates)
	if err != nil {
		return err
	}
	one, many := *own, *own
	one.name, many.name, many.load.Depth = "one-in-flight", "16-in-flight", restDepth
	return roundsOf(ctx, r, &one, &many)
}

// runSize asks two servers in turns, of which one holds a hundred times as many accounts.
func runSize(ctx context.Context, r *Run) error {
	_, small, err := startREST(ctx, r, r.Scaled(restFew), restUpdates)
	if err != nil {
		return err
	}
	_, large, err := startREST(ctx, r, r.Scaled(restMany), restUpdates)
	if err != nil {
		return err
	}
	small.name, large.name = "few-accounts", "many-accounts"
	r.Note("%d and %d accounts, all asked for equally often", small.of, large.of)
	return roundsOf(ctx, r, small, large)
}

const (
	restListPage        = 1000 // accounts of a program
	restListConnections = 4
	// restListRate is how many lists are asked for in a second while accounts are asked for: so many that one of a hundred
	// accounts comes while a list is made, and few enough for both.
	restListRate = 50
	// restPointRate is how many accounts are asked for in a second then.
	restPointRate = 5000
)

// runLists asks for as many lists as are answered, then for accounts at a rate, without lists and with some.
func runLists(ctx context.Context, r *Run) error {
	g, accounts, err := startREST(ctx, r, max(r.Scaled(restAccounts), restListPage*feed.Programs), restUpdates)
	if err != nil {
		return err
	}
	if err := g.verifyLists(ctx); err != nil {
		return err
	}
	lists := &restSubject{name: "lists", of: feed.Programs, write: g.writeList, verify: verifyList, pids: accounts.pids}
	lists.load.Address, lists.load.Connections = g.address(), restListConnections
	lists.prepare(1 << 10)
	accounts.load.Rate = restPointRate
	alone, beside := *accounts, *accounts
	alone.name, beside.name = "accounts-alone", "accounts-beside-lists"
	r.Note("a list is %d accounts of a program; beside requests for accounts, %d a second, %d lists a second are asked for",
		restListPage, restPointRate, restListRate)
	return turns(r, []func() error{
		func() error {
			m, err := lists.measure(ctx, r)
			if err == nil {
				m.record(r, lists.name, report.Figure{Unit: "records/s", Value: m.PerSecond() * restListPage})
			}
			return err
		},
		func() error { return alone.round(ctx, r) },
		func() error { return whileAsking(ctx, r, *lists, func() error { return beside.round(ctx, r) }) },
	}, func(measure func() error) error { return measure() })
}

// whileAsking does something while lists are asked for at their rate, before and after too.
func whileAsking(ctx context.Context, r *Run, lists restSubject, do func() error) error {
	lists.load.Rate = restListRate
	l, err := lists.start(r)
	if err != nil {
		return err
	}
	defer l.Close()
	return while(ctx, func(ctx context.Context) error {
		counts, err := l.Phase(ctx, patience)
		if err == nil && (counts.OK() == 0 || counts.Failed() > 0) {
			err = errors.New("a list was not answered")
		}
		return err
	}, do)
}
