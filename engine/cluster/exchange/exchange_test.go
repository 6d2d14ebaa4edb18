package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"ledgerd/engine/cluster"
	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExchange runs what needs servers of a stream on the same three.
func TestExchange(t *testing.T) {
	s := natstest.Start(t, 3)
	for name, run := range map[string]func(*testing.T, *natstest.Servers){
		"a snapshot is offered and fetched":   testSnapshotIsOfferedAndFetched,
		"a fetch goes on where it was cut":    testFetchGoesOn,
		"a corrupt part is refused":           testCorruptPartIsRefused,
		"an incomplete snapshot is passed":    testIncompleteSnapshotIsPassedOver,
		"a maker that is none offers nothing": testMakerThatIsNoneOffersNothing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, s)
		})
	}
}

// open opens the exchange beside a stream.
func open(t *testing.T, config cluster.Config) *Exchange {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	c, err := cluster.Open(config)
	must(t, err)
	t.Cleanup(c.Close)
	return New(c)
}

// maker is a writer that offers snapshots, of files that are no snapshots.
type maker struct {
	*Exchange
	t       *testing.T
	random  *rand.ChaCha8
	dir     string
	records []*ledger.Record
}

func newMaker(t *testing.T, s *natstest.Servers, stream string) *maker {
	t.Helper()
	x := open(t, cluster.Config{Servers: s.URLs(), Stream: stream, NodeID: "maker", MayWrite: true, MayMakeSnapshots: true})
	must(t, x.cluster.Log().Follow(t.Context(), ledger.LogPoint{}, func([]*ledger.Record) error { return nil }))
	eventually(t, "it makes the snapshots", x.cluster.MakesSnapshots)
	return &maker{Exchange: x, t: t, random: rand.NewChaCha8([32]byte{8}), dir: t.TempDir()}
}

// commit writes so many records, of which each leads to another state.
func (w *maker) commit(records int) {
	w.t.Helper()
	var commit []*ledger.Record
	for range records {
		v := ledger.Version(len(w.records) + 1)
		r := &ledger.Record{Version: v, Kind: ledger.StatusRecord, Status: ledger.StatusConfirmed, Slot: ledger.Slot(v), FirstSeq: 1}
		r.StateHash[0] = w.random.Uint64()
		commit, w.records = append(commit, r), append(w.records, r)
	}
	must(w.t, w.cluster.Log().Commit(w.t.Context(), commit))
}

// file makes a file of so many bytes.
func (w *maker) file(name string, size int) {
	w.t.Helper()
	b := make([]byte, size)
	_, _ = w.random.Read(b) // never fails
	must(w.t, os.WriteFile(filepath.Join(w.dir, name), b, 0o600))
}

// at is what a snapshot of a version says of itself.
func (w *maker) at(v ledger.Version) Snapshot {
	r := w.records[v-1]
	return Snapshot{Version: v, Slot: r.Slot, StateHash: r.StateHash}
}

// newest is at of the newest version.
func (w *maker) newest() Snapshot { return w.at(ledger.Version(len(w.records))) }

// mustOffer offers a snapshot, which is the newest one then.
func (w *maker) mustOffer(what Snapshot, names ...string) *Manifest {
	w.t.Helper()
	must(w.t, w.Offer(w.t.Context(), vfs.Disk{}, w.dir, names, what))
	return w.offered(w.Exchange, what.Version)
}

// offered returns the newest snapshot that a node is offered. It fails unless that is of a version.
func (w *maker) offered(x *Exchange, v ledger.Version) *Manifest {
	w.t.Helper()
	all, err := x.Offered(w.t.Context())
	if err != nil || all[0].Version != v {
		w.t.Fatalf("offered is %v (%v), want version %d", all, err, v)
	}
	return all[0]
}

// mustFetch fails unless the newest snapshot that a node is offered is of a version and of the maker's files alone.
func (w *maker) mustFetch(x *Exchange, v ledger.Version, names ...string) {
	w.t.Helper()
	dir := w.t.TempDir()
	must(w.t, x.Fetch(w.t.Context(), w.offered(x, v), vfs.Disk{}, dir, nil))
	w.mustHold(dir, names...)
}

// mustHold fails unless a directory holds the maker's files, and nothing else.
func (w *maker) mustHold(dir string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		want, got := mustRead(w.t, filepath.Join(w.dir, name)), mustRead(w.t, filepath.Join(dir, name))
		if !bytes.Equal(got, want) {
			w.t.Fatalf("%s: %d bytes, want the maker's %d", name, len(got), len(want))
		}
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != len(names) {
		w.t.Fatalf("the directory holds %v (%v), want %v", all, err, names)
	}
}

// objects returns what the object store holds.
func (w *maker) objects() *objects {
	w.t.Helper()
	id, _, err := w.cluster.Facts(w.t.Context())
	must(w.t, err)
	o, err := w.open(w.t.Context(), id, false)
	must(w.t, err)
	return o
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func testSnapshotIsOfferedAndFetched(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "shots")
	reader := open(t, cluster.Config{Servers: s.URLs(), Stream: "shots", NodeID: "r", MayMakeSnapshots: true})
	_, err := reader.Offered(t.Context())
	ledgertest.ErrorIs(t, err, ErrNoSnapshot, "before the first")
	ledgertest.ErrorIs(t, reader.Offer(t.Context(), vfs.Disk{}, w.dir, nil, Snapshot{Version: 1}), ErrNotMaker, "who does not make them")
	const history = "history-1.blocks"
	w.file(history, partBytes+5)
	part, stored := "", "" // the first part: its name, and the id of the object that holds it
	for i, state := range []string{"a.state", "b.state", "c.state"} {
		w.commit(3)
		w.file(state, 1000*(i+1))
		v := ledger.Version(len(w.records) - 1) // in the middle of its commit
		part = w.mustOffer(w.at(v), history, state).Files[0].object(0)
		w.mustFetch(reader, v, history, state)
		holder := w.objects().held[part].NUID
		if stored != "" && holder != stored {
			t.Errorf("a part that was there is stored again")
		}
		stored = holder
		// A node goes on from there.
		n := open(t, cluster.Config{Servers: s.URLs(), Stream: "shots", NodeID: "n"})
		err := n.cluster.Log().Follow(t.Context(), ledger.PointAfter(w.records[v-1]), func(commit []*ledger.Record) error {
			ledgertest.Equal(t, commit[0].Version, v+1, "the version that follows the snapshot")
			return io.EOF
		})
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	// The two newest are there, with what they name; of the stream, what is after the older one.
	if o := w.objects(); len(o.held) != 2+2+2 || len(o.versions()) != 2 {
		t.Errorf("%d objects, manifests of %v", len(o.held), o.versions())
	}
	_, err = w.cluster.RecordAt(t.Context(), 3)
	ledgertest.ErrorIs(t, err, cluster.ErrPurged, "a record before the older snapshot")
	if r, err := w.cluster.RecordAt(t.Context(), 5); err != nil || r.StateHash != w.records[4].StateHash {
		t.Errorf("the record of the older snapshot: %v", err)
	}

	// What was being stored when a node died goes with the next. A part that lost a message is sent again.
	o := w.objects()
	_, err = w.cluster.JetStream().Publish(t.Context(), o.chunkSubject("orphan"), []byte("x"))
	must(t, err)
	must(t, o.stream.Purge(t.Context(), jetstream.WithPurgeSubject(o.chunkSubject(stored)), jetstream.WithPurgeKeep(3)))
	w.commit(1)
	w.mustOffer(w.newest(), history, "c.state")
	if o := w.objects(); o.chunks["orphan"] != 0 || !o.whole(part, partBytes) {
		t.Errorf("the orphan has %d messages, the first part is whole: %t", o.chunks["orphan"], o.whole(part, partBytes))
	}
	w.mustFetch(reader, 10, history, "c.state")

	// The other node makes them when this one could not: it leaves it to others.
	lying := w.newest()
	lying.StateHash[0]++
	ledgertest.ErrorIs(t, w.Offer(t.Context(), vfs.Disk{}, w.dir, []string{"c.state"}, lying), cluster.ErrOtherLedger, "an offer of another state")
	eventually(t, "the reader makes the snapshots", reader.cluster.MakesSnapshots)
	if w.cluster.MakesSnapshots() {
		t.Error("who failed to offer one makes them still")
	}
}

// testFetchGoesOn cuts a fetch after its first part, damages one that it had, and lets it begin anew.
func testFetchGoesOn(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "cut")
	w.commit(2)
	w.file("big.state", 3*partBytes+1)
	w.file("small.state", 10)
	m, dir := w.mustOffer(w.newest(), "small.state", "big.state"), t.TempDir()
	proxy := natstest.NewProxy(t, s.Addr(2))
	reader := open(t, cluster.Config{Servers: []string{"nats://" + proxy.Addr()}, Stream: "cut", NodeID: "r"})
	ctx, cancel := context.WithCancel(t.Context())
	err := reader.Fetch(ctx, m, vfs.Disk{}, dir, func(done, total int64) {
		if done > 2*partBytes {
			proxy.Cut()
			cancel()
		}
	})
	ledgertest.ErrorIs(t, err, context.Canceled, "the fetch that was cut")
	part := filepath.Join(dir, "big.state"+fetchSuffix)
	half := mustRead(t, part)
	half[partBytes+7] ^= 1
	must(t, os.WriteFile(part, half, 0o600))
	proxy.Heal()
	var told int64
	received := func() uint64 { return reader.cluster.JetStream().Conn().Stats().InBytes }
	before := received()
	must(t, reader.Fetch(t.Context(), m, vfs.Disk{}, dir, func(done, _ int64) { told = done }))
	w.mustHold(dir, "small.state", "big.state")
	if got := received() - before; told != m.Bytes() || got > 5*partBytes/2 {
		t.Errorf("%d bytes of %d were told, %d received anew; want two parts of %d and one of a byte", told, m.Bytes(), got, partBytes)
	}
}

// testCorruptPartIsRefused stores something else in the place of a part, and another record in that of a manifest's.
func testCorruptPartIsRefused(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "corrupt")
	w.commit(2)
	w.file("a.state", 5000)
	m, dir := w.mustOffer(w.newest(), "a.state"), t.TempDir()
	o, name := w.objects(), m.Files[0].object(0)
	for what, content := range map[string][]byte{"another": make([]byte, 5000), "a shorter": make([]byte, 4), "a longer": make([]byte, 5001)} {
		must(t, o.put(t.Context(), name, content))
		ledgertest.ErrorIs(t, w.Fetch(t.Context(), m, vfs.Disk{}, dir, nil), errBadPart, "%s part", what)
	}
	if all, _ := os.ReadDir(dir); len(all) > 1 || len(all) == 1 && !strings.HasSuffix(all[0].Name(), fetchSuffix) {
		t.Errorf("the directory holds %v", all)
	}
	ledgertest.Equal(t, w.partsBad.Get(), 3, "bad parts")
	ledgertest.Equal(t, w.fetchFailures.Get(), 3, "failures")
	other := *m
	other.Record = codec.AppendRecord(nil, w.records[0])
	ledgertest.ErrorIs(t, w.Fetch(t.Context(), &other, vfs.Disk{}, dir, nil), cluster.ErrOtherLedger, "another record")
}

// testIncompleteSnapshotIsPassedOver takes a part of the newest snapshot away, and a message of another's: a node that begins is
// offered the older one that is whole, and what only a snapshot that is not whole would let go stays in the stream.
func testIncompleteSnapshotIsPassedOver(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "incomplete")
	offer := func(name string) (ledger.Version, string) {
		w.commit(1)
		w.file(name, 1000)
		m := w.mustOffer(w.newest(), name)
		return m.Version, m.Files[0].object(0)
	}
	a, partOfA := offer("a.state")
	_, partOfB := offer("b.state")
	o := w.objects()
	must(t, o.remove(t.Context(), o.held[partOfB]))
	w.offered(w.Exchange, a)
	c, partOfC := offer("c.state") // b does not count: a is kept, and the stream after it
	if got := w.objects().versions(); len(got) != 2 || got[0] != c || got[1] != a {
		t.Errorf("there are snapshots of %v, want %d and %d", got, c, a)
	}
	if _, err := w.cluster.RecordAt(t.Context(), a); err != nil {
		t.Errorf("the record of the snapshot that is kept: %v", err)
	}
	o = w.objects()
	must(t, o.purge(t.Context(), o.chunkSubject(o.held[partOfC].NUID)))
	w.offered(w.Exchange, a)
	must(t, o.remove(t.Context(), o.held[partOfA]))
	_, err := w.Offered(t.Context())
	ledgertest.ErrorIs(t, err, ErrNoSnapshot, "none is whole")
}

// testMakerThatIsNoneOffersNothing loses the turn while the only part is read.
func testMakerThatIsNoneOffersNothing(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "turns")
	w.commit(1)
	memory := vfstest.NewMemory()
	must(t, memory.WriteFile("a.state", make([]byte, 1000)))
	disk := vfstest.NewFaulty(memory, vfstest.Plan{Before: func(c vfstest.Call) {
		if c.Kind == vfstest.KindReadAt {
			w.cluster.LeaveSnapshots()
		}
	}})
	ledgertest.ErrorIs(t, w.Offer(t.Context(), disk, "", []string{"a.state"}, w.newest()), ErrNotMaker, "Offer")
	_, err := w.Offered(t.Context())
	ledgertest.ErrorIs(t, err, ErrNoSnapshot, "who lost the turn offers")
}

// TestHostileManifestsAreRefused names what no maker names.
func TestHostileManifestsAreRefused(t *testing.T) {
	record := &ledger.Record{Version: 1, Kind: ledger.StatusRecord, Status: ledger.StatusConfirmed, Slot: 1, FirstSeq: 1}
	good := Manifest{
		Format: 1, Ledger: "id", Snapshot: Snapshot{Version: 1, StateHash: record.StateHash}, Record: codec.AppendRecord(nil, record),
		Files: []File{{"a.state", 10, make([]string, 1)}},
	}
	for name, change := range map[string]func(*Manifest){
		"":                        func(*Manifest) {},
		"another format":          func(m *Manifest) { m.Format = 2 },
		"no files":                func(m *Manifest) { m.Files = nil },
		"a way out":               func(m *Manifest) { m.Files[0].Name = "../node.json" },
		"a path":                  func(m *Manifest) { m.Files[0].Name = "a/b" },
		"a hidden file":           func(m *Manifest) { m.Files[0].Name = ".a" },
		"no name":                 func(m *Manifest) { m.Files[0].Name = "" },
		"an unfinished file":      func(m *Manifest) { m.Files[0].Name = "a" + fetchSuffix },
		"a name twice":            func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) },
		"less than nothing":       func(m *Manifest) { m.Files[0].Bytes = -1 },
		"more than its parts":     func(m *Manifest) { m.Files[0].Bytes = partBytes + 1 },
		"more than anything":      func(m *Manifest) { m.Files[0].Bytes = 1 << 62 },
		"another state":           func(m *Manifest) { m.StateHash[1]++ },
		"another version":         func(m *Manifest) { m.Version++ },
		"a record that cannot be": func(m *Manifest) { m.Record = m.Record[1:] },
	} {
		m := good
		m.Files = append([]File(nil), good.Files...)
		change(&m)
		b, err := json.Marshal(&m)
		must(t, err)
		_, err = decodeManifest(b)
		ledgertest.Equal(t, err == nil, name == "", "%s: whether it is read: %v", name, err)
	}
	if v, ok := manifestVersion(manifestName(77)); !ok || v != 77 {
		t.Errorf("manifestVersion(%s) = %d, %t", manifestName(77), v, ok)
	}
}

// eventually waits until something holds.
var eventually = natstest.Eventually

var must = ledgertest.Must
