package sim

import (
	"context"
	"testing"

	"ledgerd/engine/ledger"
)

// BenchmarkUpdates measures the simulator flat out from genesis on, everything it emits thrown away.
func BenchmarkUpdates(b *testing.B) {
	for _, spec := range []string{"slots=1000", "slots=50,tps=20000", "slots=50,tps=20000,accounts=100000,zipf=1.1"} {
		b.Run(spec, func(b *testing.B) {
			s := open(b, "slot_time=0,"+spec)
			updates := 0
			b.ReportAllocs()
			for b.Loop() {
				_ = s.Run(b.Context(), nil, func(_ context.Context, e ledger.Event) error {
					if block, ok := e.(*ledger.Block); ok {
						updates += len(block.Accounts)
					}
					return nil
				})
			}
			b.ReportMetric(float64(updates)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
