package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// offered are the snapshots that a node offered, with what their files held and the facts of the cluster.
type offered struct {
	snapshot.Written
	Record  []byte // of the version, encoded
	content map[string][]byte
	facts   datadir.Facts
	model   *model // of the script that led there; nil where there is none
}

// offers returns a configuration whose snapshots go to the function.
func offers(c Config, take func(offered)) Config {
	disk := c.Dir.FS().(*vfstest.Memory)
	c.OnSnapshot = func(ctx context.Context, s snapshot.Written) {
		o := offered{Written: s, content: map[string][]byte{}}
		_, o.facts = c.Dir.Cluster()
		for _, f := range append(s.Meta.History, snapshot.HistoryRef{Name: s.Name, Bytes: s.Bytes}) {
			b, err := disk.ReadFile(filepath.Join(c.Dir.SnapshotDir(), f.Name))
			if err != nil || int64(len(b)) != f.Bytes {
				panic(fmt.Sprintf("%s: %d bytes, %v; want %d", f.Name, len(b), err, f.Bytes))
			}
			o.content[f.Name] = b
		}
		_, err := wal.NewReader(disk, c.Dir.LogDir(), s.Version).Read(ctx, func(commit []wal.Entry) error {
			for i := range commit {
				if r := commit[i].Record; r.Version == s.Version {
					o.Record = codec.AppendRecord(nil, r)
				}
			}
			return io.EOF
		})
		if !errors.Is(err, io.EOF) || o.Record == nil {
			panic(fmt.Sprintf("cannot read record %d: %v", s.Version, err))
		}
		take(o)
	}
	return c
}

// begin makes a directory of the cluster begin with the snapshot, as package cluster does: each file has its name once it is
// whole. It leaves a directory that holds records as it is.
func (o *offered) begin(ctx context.Context, disk vfs.FS) error {
	d, err := datadir.OpenOn(disk, "data")
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.BindCluster("the ledger", o.facts); err != nil {
		return err
	}
	if held, err := d.HoldsRecords(ctx); err != nil || held {
		return err
	}
	if err := disk.MkdirAll(d.SnapshotDir()); err != nil {
		return err
	}
	for name, content := range o.content {
		made, err := vfs.Replace(disk, filepath.Join(d.SnapshotDir(), name), func(to vfs.File) error {
			_, err := to.WriteAt(content, 0)
			return err
		})
		if err != nil {
			return err
		}
		made.Close()
	}
	return datadir.Adopt(ctx, d, o.Record, slog.New(slog.DiscardHandler))
}

// offering returns a shared ledger, its writer, which followed the script, and the snapshots that a replica offered of it.
func offering(t *testing.T) (l *sharedLedger, w clusterNode, all []offered) {
	t.Helper()
	l = newSharedLedger()
	maker := startMember(t, l, nil, offers(onDisk(t, vfstest.NewMemory(), Config{
		Shards: 3, SnapshotInterval: time.Second, Retention: scriptRetention,
	}), func(o offered) { all = append(all, o) }))
	w, m := writesScript(t, l)
	for i := range all {
		all[i].model = m
	}
	same(t, "the maker", w.Engine, maker.Engine)
	maker.mustStop()
	if len(all) < 4 {
		t.Fatalf("%d snapshots were offered", len(all))
	}
	return l, w, all
}

// mustFollow runs a replica on a disk, which begins with the snapshot, until it shows what the writer does. Who comes back with
// a seq gets the newest records as the shared log holds them.
func (o *offered) mustFollow(t *testing.T, l *sharedLedger, w clusterNode, disk vfs.FS) {
	t.Helper()
	replica := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 2, Retention: scriptRetention}))
	l.unreachable = false
	same(t, "the replica", w.Engine, replica.Engine)
	for _, p := range replica.published {
		must(t, rightHead(o.model, p.Head, 0))
	}
	var got []string
	must(t, replica.Past(replica.Oldest())(t.Context(), func(p *ledger.Publication) bool {
		got = append(got, encoded(p.Records)...)
		return true
	}))
	want := encoded(l.records()[o.Version-1:])
	if n := len(got); n == 0 || n > len(want) || !slices.Equal(got, want[len(want)-n:]) {
		t.Errorf("from record %d on it offers %d records that are not the newest of the shared log", o.Version, n)
	}
	replica.close()
}

// setAside sets aside what a directory on a disk holds.
func setAside(disk vfs.FS) error {
	d, err := datadir.OpenOn(disk, "data")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.SetAside()
}

// F9, F10, F53: TestBeginningAnewAtAnyMoment crashes at every call while what a replica holds is set aside, for the second time, and while it begins with a
// newer snapshot. The next who opens the directory finds all of what it held where it was, or all of it aside. Before the replica has begun
// anew nobody takes what is there for a ledger, and it goes on with the same snapshot or another.
func TestBeginningAnewAtAnyMoment(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		l, w, all := offering(t)
		begun := vfstest.NewMemory()
		must(t, all[0].begin(t.Context(), begun))
		must(t, setAside(begun))
		must(t, all[1].begin(t.Context(), begun))
		dir := onDisk(t, begun, Config{}).Dir
		last, err := dir.LastVersion(t.Context())
		must(t, err)
		if least, err := dir.LeastVersion(); err != nil || last != all[1].Version || least != last {
			t.Fatalf("it holds versions up to %d, %d at least, %v, want %d", last, least, err, all[1].Version)
		}
		dir.Close()
		logs, snapshots := datadir.LogDir("data"), datadir.SnapshotDir("data")
		old := filesIn(begun, logs, snapshots)
		newer := func(call int) *offered { return &all[2+call/2%2] }
		kept, tries := 0, 0
		crashAtEveryCall(t, begun, sample(1, 7, 15), []float64{0, 0.5, 1},
			func(call int, disk vfs.FS) error {
				if err := setAside(disk); err != nil {
					return err
				}
				return newer(call).begin(t.Context(), disk)
			},
			func(call int, left *vfstest.Memory) {
				onDisk(t, left, Config{}).Dir.Close()
				left = left.Crash(0, uint64(call)) // what is done is done
				if maps.Equal(filesIn(left, logs, snapshots), old) {
					kept++
					must(t, setAside(left))
				}
				if !maps.Equal(filesIn(left, logs+".behind", snapshots+".behind"), old) {
					t.Error("a part is held, or not all of it is aside")
				}
				held := refusesUnfinished(t, left.Clone())
				o := newer(call + 2*tries)
				tries++
				if err := o.begin(t.Context(), left); err != nil {
					t.Fatalf("crash at call %d: %v", call, err)
				}
				if held {
					o = newer(call)
				}
				o.mustFollow(t, l, w, left.Crash(0, uint64(call)))
			})
		t.Logf("%d times of %d all was kept", kept, tries)
		if kept == 0 || kept == tries {
			t.Error("no crash came before, or none behind, the note")
		}
	})
}

// refusesUnfinished starts a node on what a crash left of an adoption, and reports whether it was done. If not
// the node holds nothing or says what is the matter, and the directory can be emptied.
func refusesUnfinished(t *testing.T, disk *vfstest.Memory) (held bool) {
	t.Helper()
	l := newSharedLedger()
	l.unreachable = true
	n := startMember(t, l, nil, onDisk(t, disk, Config{Shards: 1}))
	synctest.Wait()
	ended := n.hasEnded()
	_, _, answer := n.Account(ledger.Query{}, key(1))
	_ = n.stop()
	dir := n.config.Dir
	defer dir.Close()
	held, err := dir.HoldsRecords(t.Context())
	switch {
	case err != nil:
		t.Fatal(err)
	case n.Head() != nil || held && !ended && answer != ledger.ErrRecovering:
		t.Fatalf("before it followed the log it answers %v, and shows %+v", answer, n.Head())
	case held && ended:
		t.Fatalf("it holds a record, and ended: %v", n.err)
	case ended && !strings.Contains(n.err.Error(), "begin once more"):
		t.Fatalf("ended: %v", n.err)
	}
	if err := dir.AbandonBootstrap(t.Context()); held != (err != nil) {
		t.Fatalf("emptied while it holds a ledger: %v, %v", held, err)
	}
	if files := filesIn(disk, dir.LogDir(), dir.SnapshotDir()); !held && len(files) > 0 {
		t.Fatalf("emptied, it holds %v", files)
	}
	return held
}

// F53, F54: a snapshot with another's record, state hash or seq is refused, and so is a second one.
func TestAdoptRefusesWhatDoesNotFit(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		_, w, all := offering(t)
		w.mustStop()
		o, other := all[1], all[2]
		record := func(change func(*ledger.Record)) []byte {
			r, err := codec.DecodeRecord(o.Record)
			must(t, err)
			change(r)
			return codec.AppendRecord(nil, r)
		}
		disk := vfstest.NewMemory()
		for _, tt := range []struct {
			name   string
			record []byte
			want   string
		}{
			{"no record", []byte("x"), "its record"},
			{"another's record", other.Record, "not there"},
			{"another state hash", record(func(r *ledger.Record) { r.StateHash[2]++ }), "state hash"},
			{"another seq", record(func(r *ledger.Record) { r.FirstSeq++ }), "update"},
		} {
			changed := o
			changed.Record = tt.record
			ledgertest.ErrorSays(t, changed.begin(t.Context(), disk), tt.want, "%s", tt.name)
		}
		must(t, o.begin(t.Context(), disk))
		dir := onDisk(t, disk, Config{}).Dir
		ledgertest.ErrorSays(t, datadir.Adopt(t.Context(), dir, other.Record, nil), "holds records already", "then another")
	})
}

// filesIn returns what the files of some directories hold, by their names.
func filesIn(disk *vfstest.Memory, dirs ...string) map[string]string {
	all := map[string]string{}
	for _, dir := range dirs {
		for _, path := range disk.Paths() {
			if filepath.Dir(path) == dir {
				content, _ := disk.ReadFile(path)
				all[filepath.Base(path)] = string(content)
			}
		}
	}
	return all
}

func TestOnlyAClusterSetsAside(t *testing.T) {
	ledgertest.ErrorSays(t, onDisk(t, vfstest.NewMemory(), Config{}).Dir.SetAside(), "belongs to no cluster", "a directory without")
}
