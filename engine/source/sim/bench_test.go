package sim

import (
	"context"
	"testing"

	"ledgerd/engine/ledger"
)

// BenchmarkUpdates measures the simulator flat out, everything it emits thrown away.
func BenchmarkUpdates(b *testing.B) {
	for _, spec := range []string{
		"slot_time=0",
		"slot_time=0,tps=20000",
		"slot_time=0,tps=20000,accounts=1000000",
		"slot_time=0,tps=20000,accounts=1000000,zipf=1.1",
	} {
		b.Run(spec, func(b *testing.B) {
			s := open(b, spec)
			updates := 0
			count := func(_ context.Context, e ledger.Event) error {
				if block, ok := e.(*ledger.Block); ok {
					updates += len(block.Accounts)
				}
				return nil
			}
			c, err := s.begin(b.Context(), nil, func(context.Context, ledger.Event) error { return nil })
			if err != nil {
				b.Fatal(err)
			}
			slot := c.tip.slot
			b.ReportAllocs()
			for b.Loop() {
				slot++
				if err := c.advance(b.Context(), slot, count); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(updates)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}

// BenchmarkBegin measures what a start with a million accounts costs before the first slot.
func BenchmarkBegin(b *testing.B) {
	s := open(b, "accounts=1000000")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.begin(b.Context(), nil, func(context.Context, ledger.Event) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
