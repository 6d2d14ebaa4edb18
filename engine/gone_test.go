package engine

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// F5: the log of another ledger, or a log without the file that names the directory, is no ledger to go on with, be the source live or not.
// That there is no log any more is a scene.
func TestALogOfAnotherLedgerIsRefused(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		logDir := datadir.LogDir("data")
		left := func(root *ledger.Block) *vfstest.Memory {
			disk := vfstest.NewMemory()
			startNode(t, live(), onDisk(t, disk, Config{Shards: 1})).send(root)
			return disk.Crash(0, 1) // with no snapshot yet
		}
		disk, others := left(rootBlock(100)), left(rootBlock(101))
		nameless := disk.Clone()
		must(t, nameless.Remove("data/node.json"))
		_, err := tryOnDisk(nameless, Config{})
		ledgertest.ErrorSays(t, err, "node.json is missing", "without it")
		for name := range filesIn(disk, logDir) {
			must(t, disk.Remove(filepath.Join(logDir, name)))
		}
		for name, content := range filesIn(others, logDir) {
			must(t, disk.WriteFile(filepath.Join(logDir, name), []byte(content)))
		}
		for _, info := range []ledger.SourceInfo{live(), finite()} {
			n := startNode(t, info, onDisk(t, disk, Config{Shards: 1}))
			synctest.Wait()
			ledgertest.ErrorSays(t, n.stop(), "another ledger", "live %v", info.Live)
			n.config.Dir.Close()
		}
	})
}
