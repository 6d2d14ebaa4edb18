package sim

import (
	"testing"

	"ledgerd/engine/ledger"
)

// BenchmarkUpdates measures the simulator flat out from genesis on, everything it emits thrown away.
func BenchmarkUpdates(b *testing.B) {
	for _, spec := range []string{"slots=1000", "slots=50,tps=20000", "slots=50,tps=20000,accounts=100000,zipf=1.1"} {
		b.Run(spec, func(b *testing.B) {
			updates := 0
			b.ReportAllocs()
			for b.Loop() {
				visit(b, "slot_time=0,"+spec, nil, func(e ledger.Event) {
					if block, ok := e.(*ledger.Block); ok {
						updates += len(block.Accounts)
					}
				})
			}
			b.ReportMetric(float64(updates)/b.Elapsed().Seconds(), "updates/s")
		})
	}
}
