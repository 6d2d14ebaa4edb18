package cluster

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// races returns how many pairs of writers race, and how often each of a pair becomes the writer. LEDGERD_RACES asks for more, as make chaos does.
func races(t *testing.T) (pairs, rounds int) {
	if text, ok := os.LookupEnv("LEDGERD_RACES"); ok {
		pairs, err := strconv.Atoi(text)
		must(t, err)
		return pairs, 8
	}
	return 1, 5
}

// testWritersRace lets two nodes write that both think they hold the lease, all the time, each with commits of one and of
// many messages. What one was told is committed is in the stream, once, in order; what one was told is not never is.
func testWritersRace(r *rig, seed, rounds int) {
	var both sync.WaitGroup
	racers, refused := make([]*node, 2), make([]map[ledger.StateHash]bool, 2)
	for i := range racers {
		racers[i] = &node{Cluster: r.open(Config{MayWrite: true}), rig: r}
		both.Go(func() { refused[i] = racers[i].race(rand.New(rand.NewPCG(uint64(seed), uint64(i))), rounds) })
	}
	both.Wait()
	ledgertest.MustHold(r, !r.Failed(), "seed %d", seed)
	reader := r.reader("reader")
	reader.waitFor(max(racers[0].version(), racers[1].version()))
	all := reader.has()
	for i, n := range racers {
		mustEqual(r, all[:len(n.held)], n.held)
		for _, record := range all {
			if refused[i][record.StateHash] {
				r.Fatalf("seed %d: version %d was refused, and is in the stream", seed, record.Version)
			}
		}
	}
}

// race lets a node become the writer again and again. It returns the records that Commit said nobody ever sees.
func (n *node) race(random *rand.Rand, rounds int) (refused map[ledger.StateHash]bool) {
	refused = make(map[ledger.StateHash]bool)
	for range rounds {
		n.log = newLog(n.Cluster)
		withoutLease(n.Cluster)
		if err := n.log.Follow(n.rig.Context(), pointAfter(n.held), n.take); err != nil {
			n.rig.Error(err)
			return refused
		}
		n.log.unit = []int{1, 2, unitMessages}[random.IntN(3)] // commits of one unit, and of many
		for range random.IntN(6) {
			commit := commitOf(random, pointAfter(n.held), 1+random.IntN(3), random.IntN(2)*random.IntN(6000))
			err := n.write(commit)
			if errors.Is(err, ledger.ErrDeposed) {
				for _, record := range commit {
					refused[record.StateHash] = true
				}
				break
			}
			if err != nil {
				n.rig.Error(err)
				return refused
			}
		}
	}
	return refused
}

// testLostAcknowledgement loses what the servers answer to a writer, at any point of a commit: it looks up what became of
// its messages, and nothing is there twice.
func testLostAcknowledgement(r *rig) {
	proxy := natstest.NewProxy(r, r.servers.Addr(0))
	c := r.open(Config{Servers: []string{"nats://" + proxy.Addr()}, MayWrite: true})
	withoutLease(c)
	w := r.start(c, nil)
	w.becomesWriter()
	reader := r.reader("r")
	for i := range 6 {
		if i%2 == 0 {
			proxy.Mute()
		}
		done := make(chan error, 1)
		commit := commitOf(r.random, pointAfter(w.has()), 1+r.random.IntN(2), i*1300)
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
		must(r, <-done)
	}
	ledgertest.Holds(r, c.stats.retries.Get() != 0, "nothing was looked up")
	reader.mustReach(w)
}

// testUnfinishedCommitIsNothing lets a writer send the first message of a commit of many, and another take over and write the
// same records: everybody sees those of the other, once.
func testUnfinishedCommitIsNothing(r *rig) {
	open := func(name string) *node {
		c := r.open(Config{NodeID: name, MayWrite: true})
		withoutLease(c)
		c.pace.ack = time.Minute // none is lost here
		return r.start(c, nil)
	}
	a := open("a")
	a.becomesWriter()
	a.mustCommit(1, 1)
	l := a.Log()
	// A claim by who has not followed to the end is none.
	stale := l.at
	stale.sequence, stale.point = 1, ledger.LogPoint{}
	must(r, a.conn.PublishMsg(a.messageAfter(stale.sequence, encodeClaim(stale, "late", [nonceBytes]byte{}))))
	a.mustCommit(1, 1) // after it, on the same connection

	commit := commitOf(r.random, pointAfter(a.has()), 1, 6000)
	messages, _, err := l.encoder.encode(commit, l.at)
	ledgertest.MustHold(r, err == nil && len(messages) >= 3, "%d messages: %v", len(messages), err)
	for i := range 2 {
		must(r, l.sendUnit(r.Context(), messages[i:i+1], l.at.sequence+uint64(i)))
	}
	b := open("b")
	b.becomesWriter()
	mustEqual(r, b.has(), a.has())
	// The rest of a's comes late.
	ledgertest.ErrorSays(r, l.sendUnit(r.Context(), messages[2:3], l.at.sequence+2), "wrong last sequence", "the rest of the unfinished commit")
	must(r, b.write(commit))
	ledgertest.ErrorIs(r, l.Commit(r.Context(), commit), ledger.ErrDeposed, "the one before")
	reader := open("r")
	reader.waitFor(3)
	mustEqual(r, reader.has()[:3], b.has())
}
