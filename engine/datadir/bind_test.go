package datadir

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

// binding is what a start of a node binds its directory to.
type binding func(*Dir) error

func toSource(n int) binding {
	return func(d *Dir) error {
		return d.Bind(&ledger.SourceInfo{Identity: fmt.Sprintf("sim:seed=%d", n), Complete: true}, d.Filter(), nil, d.SkipsVotes())
	}
}

// toRoot binds to a first block as an engine does.
func toRoot(n byte) binding {
	return func(d *Dir) error {
		if err := d.CheckRoot(hash(n)); err != nil {
			return err
		}
		return d.SaveRoot(ledger.Some(hash(n)), false)
	}
}

func toFilter(owners []byte, accounts ...byte) binding {
	return func(d *Dir) error { return d.Bind(nil, filter(owners, accounts...), nil, false) }
}

// toNoFilter binds to the source 1 without a filter.
func toNoFilter(d *Dir) error {
	return d.Bind(&ledger.SourceInfo{Identity: "sim:seed=1", Complete: true}, nil, nil, false)
}

// toData binds to the source 1, or to none, with the data of programs.
func toData(text string, withSource bool) binding {
	data, err := ledger.ParseDataPrograms(text)
	if err != nil {
		panic(err)
	}
	return func(d *Dir) error {
		if withSource {
			return d.Bind(&ledger.SourceInfo{Identity: "sim:seed=1", Complete: true}, d.Filter(), data, d.SkipsVotes())
		}
		return d.Bind(nil, nil, data, false)
	}
}

func toCluster(id string, change ...func(*Facts)) binding {
	f := someFacts()
	for _, other := range change {
		other(&f)
	}
	return func(d *Dir) error { return d.BindCluster(id, f) }
}

func withData(f *Facts) { f.Data, _ = ledger.ParseDataPrograms("all") }

func imported(d *Dir) error { return d.SaveImport(ImportNote{Finished: true}, nil, nil) }

// filter returns one by the numbers of keys.
func filter(owners []byte, accounts ...byte) *ledger.Filter {
	keys := func(numbers []byte) (list []ledger.Pubkey) {
		for _, n := range numbers {
			list = append(list, key(n))
		}
		return list
	}
	return ledger.NewFilter(keys(owners), keys(accounts))
}

func someFacts() Facts {
	return Facts{Source: "sim:seed=1", Complete: true, Live: true, SkipVotes: true, Filter: filter([]byte{1}, 2, 3, 4, 5, 6)}
}

// TestDirIsBoundToWhatItBeganWith binds directories, and then, opened again, to the same and to something else.
func TestDirIsBoundToWhatItBeganWith(t *testing.T) {
	const anotherLedger, otherFilter = "belongs to another ledger: choose another one with --data-dir", "begun with --index-owners "
	for name, tt := range map[string]struct {
		begin []binding
		then  binding
		want  string // part of the error; "": it is taken
	}{
		"another source":            {[]binding{toSource(1)}, toSource(2), anotherLedger},
		"another root":              {[]binding{toSource(1), toRoot(1)}, toRoot(2), anotherLedger},
		"keys in another order":     {[]binding{toFilter([]byte{1}, 3, 2)}, toFilter([]byte{1, 1}, 2, 3), ""},
		"no filter any more":        {[]binding{toFilter([]byte{1}, 3, 2)}, toNoFilter, otherFilter + key(1).String()},
		"a filter by owners alone":  {[]binding{toFilter([]byte{1}, 3, 2)}, toFilter([]byte{1}), otherFilter + key(1).String()},
		"a filter by another owner": {[]binding{toFilter([]byte{1}, 3, 2)}, toFilter([]byte{2}, 2, 3), otherFilter + key(1).String()},
		"a filter later":            {[]binding{toNoFilter, toSource(1)}, toFilter([]byte{1}), "begun without filters"},

		"the same data":              {[]binding{toData("all", true)}, toData("all", true), ""},
		"data that is not asked for": {[]binding{toData("all", true)}, toData("none", false), ""},
		"no data any more":           {[]binding{toData("all", true)}, toData("none", true), "begun with --data all: give it again"},
		"data later":                 {[]binding{toData("none", true), toRoot(1)}, toData("all", true), "begun with --data none: give it again"},
		"data later, of no source":   {[]binding{toData("none", true)}, toData("all", false), "other data comes with new base state alone"},
		"data of another program": {[]binding{toData(key(1).String(), true)}, toData(key(2).String(), true),
			"begun with --data " + key(1).String()},
		"no cluster's data":         {[]binding{toCluster("one", withData)}, toCluster("one"), "--data: all here, none there"},
		"a cluster with other data": {[]binding{toFilter([]byte{1}, 2, 3, 4, 5, 6), toSource(1)}, toCluster("one", withData), "begun with --data none"},
		"data of the same cluster":  {[]binding{toCluster("one", withData)}, toCluster("one", withData), ""},

		"another ledger of a cluster": {[]binding{toCluster("one")}, toCluster("two"), "created anew"},
		"another cluster's source":    {[]binding{toCluster("one")}, toCluster("one", func(f *Facts) { f.Source = "sim:seed=2" }), "source"},
		"another completeness":        {[]binding{toCluster("one")}, toCluster("one", func(f *Facts) { f.Complete = false }), "completeness"},
		"another liveness":            {[]binding{toCluster("one")}, toCluster("one", func(f *Facts) { f.Live = false }), "liveness"},
		"votes":                       {[]binding{toCluster("one")}, toCluster("one", func(f *Facts) { f.SkipVotes = false }), "--skip-votes"},
		"no cluster's filter":         {[]binding{toCluster("one")}, toCluster("one", func(f *Facts) { f.Filter = nil }), "filter"},
		"another cluster's filter": {[]binding{toCluster("one")}, toCluster("one", func(f *Facts) {
			f.Filter = filter([]byte{1}, 2, 3, 4, 5, 7)
		}), "filter: with"},

		"a cluster of the same source": {[]binding{toFilter([]byte{1}, 2, 3, 4, 5, 6), toSource(1)}, toCluster("one"), ""},
		"a cluster of another source":  {[]binding{toSource(2)}, toCluster("one"), "is of the source"},
		"a cluster of another filter":  {[]binding{toSource(1)}, toCluster("one"), "without filters"},
		"a cluster after a ledger":     {[]binding{toRoot(1)}, toCluster("one"), "of its own"},
		"a cluster after an import":    {[]binding{imported}, toCluster("one"), "of its own"},
	} {
		disk := vfstest.NewMemory()
		for range 2 {
			d := openOn(t, disk)
			for i, bind := range tt.begin {
				ledgertest.ErrorIs(t, bind(d), nil, "%s: binding %d", name, i)
			}
			ledgertest.Must(t, d.Close())
		}
		d := openOn(t, disk)
		before := d.saved
		err := tt.then(d)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !reflect.DeepEqual(d.saved, before)) {
			t.Errorf("%s: err = %v, want %q; bound to %+v, was %+v", name, err, tt.want, d.saved, before)
		}
		if names, err := disk.List("data"); err != nil || !slices.Equal(names, []string{"LOCK", "node.json"}) {
			t.Errorf("%s: the directory holds %v, %v, want no temporary file", name, names, err)
		}
	}
}
