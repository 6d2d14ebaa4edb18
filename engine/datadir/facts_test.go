package datadir

import (
	"errors"
	"os"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

func someFacts() Facts {
	return Facts{
		Source: "sim:seed=1", Complete: true, Live: true, SkipVotes: true,
		Filter: ledger.NewFilter([]ledger.Pubkey{key(1)}, []ledger.Pubkey{key(2), key(3), key(4), key(5), key(6)}),
	}
}

func TestDirBelongsToOneClusterLedger(t *testing.T) {
	disk := vfstest.NewMemory()
	d := openOn(t, disk)
	ledgertest.Must(t, d.BindCluster("one", someFacts()))
	d.Close()
	d = openOn(t, disk)
	if err := d.BindCluster("one", someFacts()); err != nil {
		t.Errorf("the same is refused: %v", err)
	}
	want := someFacts()
	if id, f := d.Cluster(); id != "one" || f.Difference(&want) != "" || d.Filter() == nil {
		t.Errorf("it is tied to %q, %+v", id, f)
	}
	if err := d.BindCluster("two", someFacts()); err == nil || !strings.Contains(err.Error(), "created anew") {
		t.Errorf("another ledger: %v", err)
	}
	for named, change := range map[string]func(*Facts){
		"source":       func(f *Facts) { f.Source = "sim:seed=2" },
		"completeness": func(f *Facts) { f.Complete = false },
		"liveness":     func(f *Facts) { f.Live = false },
		"--skip-votes": func(f *Facts) { f.SkipVotes = false },
		"filter":       func(f *Facts) { f.Filter = nil },
		"filter: with": func(f *Facts) {
			f.Filter = ledger.NewFilter([]ledger.Pubkey{key(1)}, []ledger.Pubkey{key(2), key(3), key(4), key(5), key(7)})
		},
	} {
		f := someFacts()
		change(&f)
		if err := d.BindCluster("one", f); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("other facts: %v, want that it names %s", err, named)
		}
	}
	d.Close()
}

// TestClusterTakesNoLedgerOfAnother binds directories that were begun otherwise.
func TestClusterTakesNoLedgerOfAnother(t *testing.T) {
	for name, tt := range map[string]struct {
		begin func(*Dir) error
		want  string // "": it is taken
	}{
		"the same source": {func(d *Dir) error {
			return errors.Join(d.BindFilter(someFacts().Filter), d.BindSource(ledger.SourceInfo{Identity: someFacts().Source, Complete: true}))
		}, ""},
		"another source": {func(d *Dir) error { return d.BindSource(ledger.SourceInfo{Identity: "sim:seed=2"}) }, "is of the source"},
		"another filter": {func(d *Dir) error { return d.BindSource(ledger.SourceInfo{Identity: someFacts().Source}) }, "without filters"},
		"a root":         {func(d *Dir) error { return bindRoot(d, hash(1)) }, "of its own"},
		"an import":      {func(d *Dir) error { return d.SaveImport(ImportNote{Finished: true}, nil) }, "of its own"},
	} {
		d := openOn(t, vfstest.NewMemory())
		ledgertest.Must(t, tt.begin(d))
		err := d.BindCluster("one", someFacts())
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if id, _ := d.Cluster(); (id == "one") != (err == nil) {
			t.Errorf("%s: tied to %q", name, id)
		}
		d.Close()
	}
}

// FuzzDecodeFacts: facts come back as they were, and what is read is written as it was.
func FuzzDecodeFacts(f *testing.F) {
	some := someFacts()
	for _, facts := range []Facts{{}, {Source: "a \"b\""}, some} {
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

// TestNodeFilesOfEarlierVersionsAreRead opens directories whose node.json the version before wrote, which had the
// facts of a cluster twice.
func TestNodeFilesOfEarlierVersionsAreRead(t *testing.T) {
	filter := ledger.NewFilter([]ledger.Pubkey{key(1)}, []ledger.Pubkey{key(2), key(3)})
	open := func(name string) (*Dir, *vfstest.Memory, error) {
		t.Helper()
		content, err := os.ReadFile("testdata/" + name)
		ledgertest.Must(t, err)
		disk := vfstest.NewMemory()
		ledgertest.Must(t, disk.WriteFile("data/node.json", content))
		d, err := OpenOn(disk, "data")
		return d, disk, err
	}

	d, disk, err := open("cluster-1.json")
	ledgertest.Must(t, err)
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
		ledgertest.Must(t, d.update(func(n *nodeFile) error { n.Gaps = true; return nil }))
		d.Close()
		d = openOn(t, disk)
	}

	d, _, err = open("alone-1.json")
	ledgertest.Must(t, err)
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
