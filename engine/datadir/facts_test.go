package datadir

import (
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// FuzzDecodeFacts: facts come back as they were, and what is read is written as it was.
func FuzzDecodeFacts(f *testing.F) {
	some := someFacts()
	tellsData := some
	tellsData.change(f, []string{"data=all"})
	for _, facts := range []Facts{{}, {Source: "a \"b\""}, some, tellsData} {
		b := facts.Encode()
		if got, err := DecodeFacts(b); err != nil || facts.Difference(&got) != "" {
			f.Errorf("%s came back as %+v, %v", b, got, err)
		}
		f.Add(b)
	}
	whole := string(some.Encode())
	for _, bad := range []string{
		"", whole[:len(whole)-1], whole + "{}", `{"x":1,` + whole[1:], "[]", `{"source_identity":"a"}`, strings.Replace(whole, key(1).String(), "xyz", 1),
	} {
		f.Add([]byte(bad))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if facts, err := DecodeFacts(b); err == nil && string(facts.Encode()) != string(b) {
			t.Errorf("%q was read, and is written as %q", b, facts.Encode())
		}
	})
}

// TestNodeFilesOfTheVersionBeforeAreRead opens directories whose node.json the version before wrote. One of a version before that
// is refused.
func TestNodeFilesOfTheVersionBeforeAreRead(t *testing.T) {
	filter := filter([]byte{1}, 2, 3)
	open := func(name string) (*Dir, *vfstest.Memory, error) {
		t.Helper()
		content := ledgertest.ReadFile(t, "testdata/"+name)
		disk := vfstest.NewMemory()
		ledgertest.Must(t, disk.WriteFile("data/node.json", content))
		d, err := OpenOn(disk, "data")
		return d, disk, err
	}

	d, disk, err := open("cluster-2.json")
	ledgertest.Must(t, err)
	id := d.NodeID()
	facts := Facts{Source: "sim:seed=1", Complete: true, Live: true, SkipVotes: true, Filter: filter}
	for _, when := range []string{"as it was", "as it is written now"} {
		ledgerID, held := d.Cluster()
		if other := held.Difference(&facts); ledgerID != "one" || other != "" || !d.Statuses() || !d.HasRoot() || d.NodeID() != id {
			t.Errorf("%s: it is bound to %q, %+v; %s", when, ledgerID, held, other)
		}
		ledgertest.ErrorIs(t, d.BindCluster("one", facts), nil, "%s: the same", when)
		ledgertest.Must(t, d.update(func(n *nodeFile) error { n.Gaps = !n.Gaps; return nil }))
		d.Close()
		d = openOn(t, disk)
	}

	d, _, err = open("alone-1.json")
	ledgertest.Must(t, err)
	ledgertest.ErrorIs(t, d.Bind(&ledger.SourceInfo{Identity: "test"}, filter, nil, false), nil, "the same")
	ledgertest.ErrorIs(t, d.CheckRoot(hash(9)), nil, "the same root")
	if id, _ := d.Cluster(); id != "" || !d.ShowsAll() {
		t.Errorf("it is bound to %q and shows all: %v", id, d.ShowsAll())
	}

	_, _, err = open("aside-1.json")
	ledgertest.ErrorSays(t, err, "open it once with the version between", "a directory of an older version, which had the facts of a cluster twice")
}
