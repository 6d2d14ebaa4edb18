package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
)

const (
	servedSlot    = 400 * time.Millisecond
	servedUpdates = 3000 // a slot: 7,500 a second
	servedReaders = 4
	servedBetween = 15 * time.Second // from one snapshot to the next
	servedTimed   = 64               // of so many reads the time of one is kept: the memory is measured too
)

// pacedChain is a source that builds on the bench's root, slot after slot.
type pacedChain struct {
	accounts int
	shown    sync.Map // slot → when it was shown
}

func (p *pacedChain) Info() ledger.SourceInfo { return live() }
func (p *pacedChain) Peers() int              { return 1 }

func (p *pacedChain) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	r := rand.New(rand.NewPCG(1, 2))
	parent := &ledger.Block{Slot: from.Slot, Blockhash: from.Blockhash}
	ticker := time.NewTicker(servedSlot)
	defer ticker.Stop()
	for {
		b := child(parent, parent.Slot+1, 0)
		for range servedUpdates {
			a := benchAccount(r.IntN(p.accounts), p.accounts)
			w := a.Write()
			w.Lamports = ledger.Lamports(r.Uint64N(1 << 40))
			b.Accounts = append(b.Accounts, w)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		p.shown.Store(b.Slot, time.Now())
		if err := emit(ctx, b); err != nil {
			return err
		}
		if err := emit(ctx, status(parent, ledger.StatusFinalized)); err != nil {
			return err
		}
		parent = b
	}
}

// measured is what readers and the publisher saw in one phase.
type measured struct {
	mu      sync.Mutex
	reads   []time.Duration
	publish time.Duration // the slowest
	rss     int64         // the most
}

func (m *measured) p99() time.Duration {
	if len(m.reads) == 0 { // of few accounts a snapshot is over before anybody looks
		return 0
	}
	slices.Sort(m.reads)
	return m.reads[len(m.reads)*99/100]
}

// BenchmarkSnapshotWhileServing takes a snapshot of LEDGERD_BENCH_ACCOUNTS accounts while 7,500
// updates come in a second and readers ask at half their most, and compares the time between two
// snapshots with that during one.
func BenchmarkSnapshotWhileServing(b *testing.B) {
	if testing.Short() {
		b.Skip("it waits for snapshots, a quarter of a minute for each")
	}
	n := recoveredAccounts(b)
	path := b.TempDir()
	writeBench(b, path, n)
	dir, err := datadir.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	var idle, busy measured
	var e *Engine
	phase := func() *measured {
		if e.Stats().Snapshot.Running {
			return &busy
		}
		return &idle
	}
	source := &pacedChain{accounts: n}
	e = New(Config{
		Source: source, Dir: dir, SnapshotInterval: servedBetween, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		OnPublish: func(p *ledger.Publication) {
			if at, ok := source.shown.LoadAndDelete(p.Head.Tips[ledger.Processed].Slot); ok {
				m := phase()
				m.mu.Lock()
				m.publish = max(m.publish, time.Since(at.(time.Time)))
				m.mu.Unlock()
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for e.Head() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	most := readFor(e, n, 3*time.Second, 0, &measured{})
	idle, busy = measured{}, measured{}
	for b.Loop() {
		for want := e.Stats().Snapshot.Count + 1; e.Stats().Snapshot.Count < want; {
			readFor(e, n, 250*time.Millisecond, most/2, phase())
		}
	}
	b.ReportMetric(float64(most), "max-reads/s")
	b.ReportMetric(idle.p99().Seconds()*1e6, "p99-before-µs")
	b.ReportMetric(busy.p99().Seconds()*1e6, "p99-during-µs")
	b.ReportMetric(idle.publish.Seconds()*1e3, "publish-before-ms")
	b.ReportMetric(busy.publish.Seconds()*1e3, "publish-during-ms")
	b.ReportMetric(float64(busy.rss)/float64(idle.rss), "memory-ratio")
	b.ReportMetric(e.Stats().Snapshot.Duration.Seconds(), "snapshot-s")
	b.ReportMetric(float64(e.Stats().Snapshot.Bytes)/float64(n), "snapshot-B/account")
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// readFor has readers ask for a while, at a rate or, with 0, as fast as they can, and returns the
// rate there was.
func readFor(e *Engine, n int, d time.Duration, rate int, m *measured) int {
	var done atomic.Int64
	var readers sync.WaitGroup
	begun := time.Now()
	for i := range servedReaders {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(begun.UnixNano()), uint64(i)))
			var took []time.Duration
			for k := 0; time.Since(begun) < d; k++ {
				if rate > 0 {
					due := begun.Add(time.Duration(k) * time.Second * servedReaders / time.Duration(rate))
					if wait := time.Until(due); wait > 0 {
						time.Sleep(wait)
					}
				}
				asked := time.Now()
				if _, _, err := e.Account(ledger.Query{}, benchKey(r.IntN(n), n)); err == nil {
					done.Add(1)
				}
				if k%servedTimed == 0 {
					took = append(took, time.Since(asked))
				}
			}
			m.mu.Lock()
			m.reads = append(m.reads, took...)
			m.mu.Unlock()
		})
	}
	readers.Wait()
	m.rss = max(m.rss, residentBytes())
	return int(float64(done.Load()) / time.Since(begun).Seconds())
}

// residentBytes returns what the process takes of the machine's memory.
func residentBytes() (n int64) {
	content, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(content)) {
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &n); err == nil {
			return n << 10
		}
	}
	return 0
}
