package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"ledgerd/cmd/ledgerd/internal/testnode"
	"ledgerd/engine/ledger"
)

// BenchmarkStream has a ledgerd of its own follow a node's stream, from the socket to what REST shows:
// at the pace of a main network, and all at once. An operation is a block. "cores" and "CPU-µs/update" are
// of ledgerd alone, as the kernel counts them; the node that it follows shares its processors.
func BenchmarkStream(b *testing.B) {
	const (
		warmup   = 10
		parallel = 40 // that are told at once: what a node lets a subscriber lag
		slotTime = 400 * time.Millisecond
	)
	for _, pace := range []time.Duration{slotTime, 0} {
		b.Run(fmt.Sprintf("every=%v", pace), func(b *testing.B) {
			l, err := testnode.Simulated(fmt.Sprintf("seed=1,accounts=200000,tps=4000,votes=0,slot_time=0,slots=%d", warmup+b.N+parallel), testnode.Plan{})
			must(b, err)
			n := startNode(b, l, testnode.Config{})
			defer n.Close()
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			go n.Run(ctx, slotTime)
			p := launch(b, "--data-dir", b.TempDir(), "--source", "geyser:"+n.StreamURL(), "--snapshot-interval", "0").ready()
			p.await(l.Main()[warmup].Slot)
			updates, transactions := 0, 0
			from := p.slot()
			cpu := p.usage().CPU()
			b.ResetTimer()
			if pace == 0 {
				cancel()
				for told := 0; told < b.N; told += parallel {
					n.Advance(min(parallel, b.N-told))
					p.await(n.Tip(ledger.Processed))
				}
			} else {
				p.await(from + ledger.Slot(b.N))
			}
			b.StopTimer()
			cpu, to := p.usage().CPU()-cpu, p.slot()
			for _, block := range l.Main() {
				if block.Slot > from && block.Slot <= to {
					updates += len(block.Accounts)
					transactions += len(block.Transactions)
				}
			}
			seconds := b.Elapsed().Seconds()
			b.ReportMetric(float64(updates)/seconds, "updates/s")
			b.ReportMetric(float64(transactions)/seconds, "transactions/s")
			b.ReportMetric(cpu.Seconds()/seconds, "cores")
			b.ReportMetric(cpu.Seconds()*1e6/float64(updates), "CPU-µs/update")
		})
	}
}

// slot is the newest one that the node shows.
func (v *victim) slot() ledger.Slot {
	v.Helper()
	slot, err := strconv.ParseUint(v.get("/status").header.Get("X-Ledger-Slot"), 10, 64)
	must(v, err)
	return ledger.Slot(slot)
}

func (v *victim) await(slot ledger.Slot) {
	v.Helper()
	v.until(fmt.Sprint("slot ", slot, " is shown"), func() bool { return v.slot() >= slot })
}
