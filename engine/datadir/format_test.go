package datadir

import (
	"os"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestNodeFilesOfEarlierVersionsAreRead opens directories whose node.json the version before wrote, which had the
// facts of a cluster twice.
func TestNodeFilesOfEarlierVersionsAreRead(t *testing.T) {
	filter := ledger.NewFilter([]ledger.Pubkey{key(1)}, []ledger.Pubkey{key(2), key(3)})
	open := func(name string) (*Dir, *vfstest.Memory, error) {
		t.Helper()
		content, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		disk := vfstest.NewMemory()
		if err := disk.WriteFile("data/node.json", content); err != nil {
			t.Fatal(err)
		}
		d, err := OpenOn(disk, "data")
		return d, disk, err
	}

	d, disk, err := open("cluster-1.json")
	if err != nil {
		t.Fatal(err)
	}
	id := d.NodeID()
	facts := Facts{Source: "sim:seed=1", Complete: true, Live: true, SkipVotes: true, Filter: filter}
	for _, when := range []string{"as it was", "as it is written now"} {
		ledgerID, held := d.Cluster()
		if other := held.Difference(&facts); ledgerID != "one" || other != "" || !d.Statuses() || !d.HasRoot() || d.NodeID() != id {
			t.Errorf("%s: it is bound to %q, %+v; %s", when, ledgerID, held, other)
		}
		if err := d.BindCluster("one", facts); err != nil {
			t.Errorf("%s: the same is refused: %v", when, err)
		}
		if err := d.update(func(n *nodeFile) error { n.Gaps = true; return nil }); err != nil {
			t.Fatal(err)
		}
		d.Close()
		if d, err = OpenOn(disk, "data"); err != nil {
			t.Fatal(err)
		}
	}

	if d, _, err = open("alone-1.json"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"filter": d.BindFilter(filter), "source": d.BindSource(ledger.SourceInfo{Identity: "test"}), "votes": d.BindVotes(false), "root": d.CheckRoot(hash(9)),
	} {
		if err != nil {
			t.Errorf("the same %s is refused: %v", name, err)
		}
	}
	if id, _ := d.Cluster(); id != "" || !d.ShowsAll() {
		t.Errorf("it is bound to %q and shows all: %v", id, d.ShowsAll())
	}

	if _, _, err := open("aside-1.json"); err == nil || !strings.Contains(err.Error(), "open it once with that version") {
		t.Errorf("a directory that was being set aside: %v, want what to do", err)
	}
}
