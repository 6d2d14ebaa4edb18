package engine

import (
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// F34: TestAStartThatLacksFilesOrMemoryLosesNothing has each call of a start that opens or reads something fail for want of descriptors or of
// memory: the start is refused for that, or goes on without harm, and takes no file for damaged.
func TestAStartThatLacksFilesOrMemoryLosesNothing(t *testing.T) {
	const opening = vfstest.KindOpen | vfstest.KindOpenWrite | vfstest.KindCreate | vfstest.KindList | vfstest.KindSyncDir
	held := vfstest.NewMemory()
	bubbletest.Test(t, func(t *testing.T) {
		c := archiving()
		c.SnapshotInterval = time.Second
		n, block := diskNode(t, held, c)
		for range 30 {
			block = n.finalize(block)
			time.Sleep(200 * time.Millisecond)
		}
		pause(2 * archiveRetry)
		n.close()
	})
	vfstest.EveryCall(t, 1, held, map[string]vfstest.Plan{
		"no descriptor": {Kinds: opening, Err: syscall.EMFILE},
		"no memory":     {Kinds: opening | vfstest.KindReadAt, Err: syscall.ENOMEM},
	}, func(t *testing.T, memory *vfstest.Memory, disk *vfstest.Faulty, plan vfstest.Plan) {
		bubbletest.Test(t, func(t *testing.T) {
			c, err := tryOnDisk(disk, archiving())
			if err == nil {
				n := startSource(t, nil, c)
				pause(time.Second)
				ledgertest.Equal(t, n.Stats().LostHistory, 0, "call %d: files of history that are taken for lost", plan.Call)
				err = n.stop()
				c.Dir.Close()
			}
			if err != nil {
				ledgertest.ErrorIs(t, err, plan.Err, "call %d", plan.Call)
			}
			ledgertest.Equal(t, memory.Paths(), held.Paths(), "call %d: the files", plan.Call)
		})
	})
}
