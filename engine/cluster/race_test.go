package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
)

// testWritersRace lets two nodes write that both think they hold the lease, all the time, each with commits of one and of
// many messages. What one was told is committed is in the stream, once, in order; what one was told is not never is.
func testWritersRace(t *testing.T, s *natstest.Servers) {
	seeds, rounds := 5, 8
	if testing.Short() {
		seeds, rounds = 3, 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			testTwoRace(t, s, seed, rounds)
		})
	}
}

func testTwoRace(t *testing.T, s *natstest.Servers, seed, rounds int) {
	stream := fmt.Sprintf("race-%d", seed)
	var both sync.WaitGroup
	racers := make([]*racer, 2)
	for i := range racers {
		c := open(t, s.URLs(), Config{Stream: stream, NodeID: fmt.Sprintf("racer-%d", i), MayWrite: true})
		racers[i] = &racer{t: t, c: c, random: rand.New(rand.NewPCG(uint64(seed), uint64(i))), refused: make(map[ledger.StateHash]bool)}
		both.Go(func() { racers[i].run(rounds) })
	}
	both.Wait()
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
	var end ledger.Version
	for _, r := range racers {
		end = max(end, pointAfter(r.held).Version)
	}
	reader := follow(t, open(t, s.URLs(), Config{Stream: stream, NodeID: "reader"}), nil)
	reader.waitFor(end)
	all := reader.has()
	for _, r := range racers {
		mustEqual(t, all[:len(r.held)], r.held)
		for _, record := range all {
			if r.refused[record.StateHash] {
				t.Fatalf("seed %d: version %d was refused, and is in the stream", seed, record.Version)
			}
		}
	}
}

// racer becomes the writer again and again.
type racer struct {
	t       *testing.T
	c       *Cluster
	random  *rand.Rand
	held    []*ledger.Record
	refused map[ledger.StateHash]bool // of records that Commit said nobody ever sees
}

func (r *racer) take(commit []*ledger.Record) error {
	r.held = append(r.held, commit...)
	return nil
}

func (r *racer) run(rounds int) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for range rounds {
		r.c.log = newLog(r.c)
		withoutLease(r.c)
		if err := r.c.log.Follow(ctx, pointAfter(r.held), r.take); err != nil {
			r.t.Errorf("%s: %v", r.c.config.NodeID, err)
			return
		}
		r.c.log.unit = []int{1, 2, unitMessages}[r.random.IntN(3)] // commits of one unit, and of many
		for range r.random.IntN(6) {
			commit := commitOf(r.random, pointAfter(r.held), 1+r.random.IntN(3), r.random.IntN(2)*r.random.IntN(6000))
			err := r.c.log.Commit(ctx, commit)
			if errors.Is(err, ledger.ErrDeposed) {
				for _, record := range commit {
					r.refused[record.StateHash] = true
				}
				break
			}
			if err != nil {
				r.t.Errorf("%s: %v", r.c.config.NodeID, err)
				return
			}
			r.held = append(r.held, commit...)
		}
	}
}

// testLostAcknowledgement loses what the servers answer to a writer, at any point of a commit: it looks up what became of
// its messages, and nothing is there twice.
func testLostAcknowledgement(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(2, 0))
	proxy := natstest.NewProxy(t, s.Addr(0))
	c := open(t, []string{"nats://" + proxy.Addr()}, Config{Stream: "lost", NodeID: "w", MayWrite: true})
	withoutLease(c)
	w := follow(t, c, nil)
	w.writes()
	reader := follow(t, open(t, s.URLs(), Config{Stream: "lost", NodeID: "r"}), nil)
	for i := range 8 {
		if i%2 == 0 {
			proxy.Mute()
		}
		done := make(chan error, 1)
		commit := commitOf(random, pointAfter(w.has()), 1+random.IntN(2), i*900)
		go func() { done <- w.write(commit) }()
		if i%2 == 0 {
			reader.waitFor(pointAfter(commit).Version) // it is in the stream, and the writer does not know
			proxy.Heal()
		} else {
			for range i {
				proxy.Cut()
				proxy.Heal()
			}
		}
		noErr(t, <-done)
	}
	if c.stats.retries.Get() == 0 {
		t.Error("nothing was looked up")
	}
	reader.waitFor(pointAfter(w.has()).Version)
	mustEqual(t, reader.has(), w.has())
}

// testUnfinishedCommitIsNothing lets a writer send the first message of a commit of many, and another take over and write the
// same records: everybody sees those of the other, once.
func testUnfinishedCommitIsNothing(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(13, 0))
	open := func(name string) *Cluster {
		c := open(t, s.URLs(), Config{Stream: "unfinished", NodeID: name, MayWrite: true})
		withoutLease(c)
		return c
	}
	a := follow(t, open("a"), nil)
	a.writes()
	a.mustCommit(random, 1, 1)
	l := a.Log()
	// A claim by who has not followed to the end is none.
	stale := l.at
	stale.sequence, stale.point = 1, ledger.LogPoint{}
	noErr(t, a.conn.PublishMsg(a.messageAfter(stale.sequence, encodeClaim(stale, "late", [nonceBytes]byte{}))))
	a.mustCommit(random, 1, 1) // after it, on the same connection

	commit := commitOf(random, pointAfter(a.has()), 1, 6000)
	messages, _, err := l.encoder.encode(commit, l.at)
	if err != nil || len(messages) < 3 {
		t.Fatalf("%d messages: %v", len(messages), err)
	}
	for i := range 2 {
		noErr(t, l.sendUnit(t.Context(), messages[i:i+1], l.at.sequence+uint64(i)))
	}
	b := follow(t, open("b"), nil)
	b.writes()
	mustEqual(t, b.has(), a.has())
	// The rest of a's comes late.
	if err := l.sendUnit(t.Context(), messages[2:3], l.at.sequence+2); err == nil {
		t.Fatal("the rest of the unfinished commit is taken")
	}
	noErr(t, b.write(commit))
	if err := l.Commit(t.Context(), commit); !errors.Is(err, ledger.ErrDeposed) {
		t.Fatalf("the one before: err = %v, want %v", err, ledger.ErrDeposed)
	}
	reader := follow(t, open("r"), nil)
	reader.waitFor(3)
	mustEqual(t, reader.has()[:3], b.has())
}
