package cluster

import (
	"sync"
	"testing"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/ledger"
)

// BenchmarkCommit writes batches of 32 blocks with 600 updates each, as a source that is ahead makes them, through three servers
// that sync every message, one reader following.
func BenchmarkCommit(b *testing.B) { benchmarkCommit(b, 32, 600) }

// BenchmarkCommitSmall writes one block at a time, as near the tip.
func BenchmarkCommitSmall(b *testing.B) { benchmarkCommit(b, 1, 600) }

func benchmarkCommit(b *testing.B, records, updates int) {
	r := newRig(b, natstest.Start(b, 3), "bench")
	w, reader := r.writer("w"), r.open(Config{NodeID: "r"})
	var reading sync.WaitGroup
	reading.Go(func() {
		_ = reader.Log().Follow(b.Context(), ledger.LogPoint{}, func([]*ledger.Record) error { return nil }) // until b ends
	})
	b.Cleanup(reading.Wait)
	template := commitOf(r.random, ledger.LogPoint{}, records, updates)
	at := ledger.LogPoint{}
	b.ReportAllocs()
	for b.Loop() {
		commit := make([]*ledger.Record, records)
		for i, r := range template {
			c := *r
			c.Version, c.Slot = at.Version+ledger.Version(i)+1, at.Slot+ledger.Slot(i)+1
			commit[i] = &c
		}
		noErr(b, w.Log().Commit(b.Context(), commit))
		at = pointAfter(commit)
	}
	b.ReportMetric(float64(b.N*records*updates)/b.Elapsed().Seconds(), "updates/s")
	b.ReportMetric(float64(w.stats.bytesWritten.Get())/float64(w.stats.commitsWritten.Get())/float64(records*updates), "bytes/update")
	eventually(b, "the reader holds everything", func() bool {
		return reader.stats.commitsRead.Get() >= uint64(b.N) && reader.Log().lastTaken() == w.Log().at.sequence
	})
}
