package engine

import (
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// TestNodeFileThatIsGoneIsNotMadeAnew takes it away beside a log.
func TestNodeFileThatIsGoneIsNotMadeAnew(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, _ := diskNode(t, disk, Config{})
		n.mustStop()
		n.config.Dir.Close()
		disk.Remove("data/node.json")
		if _, err := datadir.OpenOn(disk, "data"); err == nil || !strings.Contains(err.Error(), "node.json is missing") {
			t.Errorf("opened without its node file: %v", err)
		}
	})
}

// TestLedgerThatIsGoneIsNoFreshStart takes away the log and the snapshots of a node, or puts those of
// another ledger in their place: the start is refused, whatever kind the source is.
func TestLedgerThatIsGoneIsNoFreshStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		left := func(root *ledger.Block) *vfstest.Memory {
			disk := vfstest.NewMemory()
			n := startNode(t, live(), onDisk(t, disk, Config{Shards: 1}))
			if n.Status().NodeID != n.config.Dir.NodeID() {
				t.Errorf("node id %q, want the directory's", n.Status().NodeID)
			}
			n.send(root)
			cut := disk.Crash(0, 1) // with no snapshot yet
			n.mustStop()
			return cut
		}
		ours, others := left(rootBlock(100)), left(rootBlock(101))
		for name, tt := range map[string]struct {
			harm func(path string, disk *vfstest.Memory)
			want string
		}{
			"untouched": {func(string, *vfstest.Memory) {}, ""},
			"gone":      {func(path string, disk *vfstest.Memory) { disk.Remove(path) }, "are gone"},
			"of another ledger": {func(path string, disk *vfstest.Memory) {
				content, err := others.ReadFile(path)
				if err == nil {
					err = disk.WriteFile(path, content)
				}
				if err != nil {
					t.Fatal(err)
				}
			}, "another ledger"},
		} {
			disk := ours.Clone()
			for _, path := range disk.Paths() {
				if filepath.Dir(path) == datadir.LogDir("data") {
					tt.harm(path, disk)
				}
			}
			for _, info := range []ledger.SourceInfo{live(), finite()} {
				n := startNode(t, info, onDisk(t, disk, Config{Shards: 1}))
				synctest.Wait()
				err := n.stop()
				n.config.Dir.Close()
				if refused := err != nil && strings.Contains(err.Error(), tt.want); refused != (tt.want != "") {
					t.Errorf("%s, live %v: %v, want a refusal that says %q", name, info.Live, err, tt.want)
				}
			}
		}
	})
}
