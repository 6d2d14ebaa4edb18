package cluster

import (
	"math/rand/v2"
	"testing"

	"ledgerd/engine/cluster/natstest"
)

// TestServers runs what needs three servers: what leaves them alone on the same three, what does not on three of its own.
func TestServers(t *testing.T) {
	t.Parallel()
	t.Run("side by side", func(t *testing.T) {
		t.Parallel()
		s := natstest.Start(t, 3)
		for name, run := range map[string]func(*testing.T, *natstest.Servers){
			"a commit is followed":                testCommitIsFollowed,
			"writers race":                        testWritersRace,
			"an unfinished commit is nothing":     testUnfinishedCommitIsNothing,
			"a lost acknowledgement is looked up": testLostAcknowledgement,
			"a standby takes over":                testStandbyTakesOver,
			"a stream that changed is named":      testChangedStreamIsNamed,
			"a repeated message is refused":       testRepeatedMessageIsRefused,
			"another record is named":             testOtherRecordIsNamed,
			"peers are counted":                   testPeersAreCounted,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, s)
			})
		}
	})
	for name, run := range map[string]func(*testing.T, *natstest.Servers){
		"a minority does not commit":       testMinorityDoesNotCommit,
		"a server that is behind is alone": testServerThatIsBehindIsAlone,
		"servers are killed":               testServersAreKilled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, natstest.Start(t, 3))
		})
	}
}

func testCommitIsFollowed(t *testing.T, s *natstest.Servers) {
	random := rand.New(rand.NewPCG(1, 0))
	w := follow(t, open(t, s.URLs(), Config{Stream: "followed", NodeID: "w", MayWrite: true, Facts: []byte("facts")}), nil)
	w.writes()
	r := follow(t, open(t, s.URLs(), Config{Stream: "followed", NodeID: "r"}), nil)
	for i := range 20 {
		w.mustCommit(random, 1+i%3, i*i*20)
	}
	r.waitFor(pointAfter(w.has()).Version)
	// A server forgets a reader's consumer, as it does when it is started again.
	stream, err := w.js.Stream(t.Context(), "followed")
	if err != nil {
		t.Fatal(err)
	}
	for consumer := range stream.ConsumerNames(t.Context()).Name() {
		if err := stream.DeleteConsumer(t.Context(), consumer); err != nil {
			t.Fatal(err)
		}
	}
	w.mustCommit(random, 1, 1)
	r.waitFor(pointAfter(w.has()).Version)
	mustEqual(t, r.has(), w.has())
	id, facts, err := r.Facts(t.Context())
	if err != nil || id == "" || string(facts) != "facts" {
		t.Fatalf("Facts() = %q, %q, %v", id, facts, err)
	}
	// From some places: a node may stand in the middle of a commit.
	for _, at := range []int{0, 1, 2, 3, 17, 18, 19, len(w.has())} {
		n := follow(t, open(t, s.URLs(), Config{Stream: "followed", NodeID: "n", LedgerID: id}), w.has()[:at])
		n.waitFor(pointAfter(w.has()).Version)
		mustEqual(t, n.has(), w.has())
		n.cancel()
		n.end()
		n.Close()
	}
}
