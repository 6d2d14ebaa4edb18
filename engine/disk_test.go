package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ingest"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs/vfstest"
)

// F18: TestDiskStallHoldsUpNobodyButIngest stalls a sync: queries are answered from the slot before, no
// more events are taken than two commits hold, and afterwards all of them appear. Where the process is killed meanwhile,
// the next one finds the first block in the machine's memory and shows it only once a power cut would leave it.
func TestDiskStallHoldsUpNobodyButIngest(t *testing.T) {
	diskTest(t, Config{}, func(t *testing.T, memory *vfstest.Memory, n *subject, root *ledger.Block) {
		release := stall(n.disk, vfstest.Plan{}, vfstest.KindSync, "")
		next := chainOf(root, 3*ingest.EventLane)
		n.send(next[0])
		taken := 1
		for room := true; room && taken < len(next); synctest.Wait() {
			select {
			case n.source.feed <- next[taken]:
				taken++
			default:
				room = false
			}
		}
		if taken > 2*ingest.EventLane {
			t.Errorf("%d events were taken while the disk stalled", taken)
		}
		time.Sleep(30 * time.Second)
		n.mustStand(root.Slot)
		left := memory.Clone() // what was not synced still is not
		release()
		n.mustStand(next[taken-1].Slot)
		n.mustStop()
		mustHold(t, left, root.Slot+1)
		mustHold(t, left.Crash(0, 1), root.Slot+1)
	})
}
