package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// shooter is a writer that offers snapshots, of files that are no snapshots.
type shooter struct {
	*node
	random *rand.Rand
	dir    string
}

func newShooter(t *testing.T, s suite, stream string) *shooter {
	t.Helper()
	c := open(t, s.URLs(), Config{Stream: stream, NodeID: "maker", MayWrite: true, MayMakeSnapshots: true})
	w := &shooter{follow(t, c, nil), rand.New(rand.NewPCG(8, 0)), t.TempDir()}
	w.writes()
	eventually(t, "it makes the snapshots", c.MakesSnapshots)
	return w
}

// file makes a file of so many bytes, if there is none of the name.
func (w *shooter) file(name string, size int) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if _, err := os.Stat(path); err == nil {
		return
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(w.random.Uint32())
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// shot is of the newest record.
func (w *shooter) shot() Snapshot {
	last := w.has()[len(w.has())-1]
	return Snapshot{Version: last.Version, Slot: last.Slot, Blockhash: last.Hash.String(), StateHash: last.StateHash}
}

func (w *shooter) mustOffer(names ...string) {
	w.t.Helper()
	if err := w.Offer(w.t.Context(), vfs.Disk{}, w.dir, names, w.shot()); err != nil {
		w.t.Fatal(err)
	}
}

// mustHold fails unless a directory holds the maker's files, and nothing else.
func (w *shooter) mustHold(dir string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		want, err := os.ReadFile(filepath.Join(w.dir, name))
		if err != nil {
			w.t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			w.t.Fatalf("%s: %d bytes (%v), want the maker's %d", name, len(got), err, len(want))
		}
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != len(names) {
		w.t.Fatalf("the directory holds %v (%v), want %v", all, err, names)
	}
}

func (w *shooter) objects(t *testing.T) *objects {
	t.Helper()
	o, err := w.Cluster.objects(t.Context(), false)
	if err == nil {
		err = o.list(t.Context(), w.Cluster)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func testSnapshotIsOfferedAndFetched(t *testing.T, s suite) {
	w := newShooter(t, s, "shots")
	reader := open(t, s.URLs(), Config{Stream: "shots", NodeID: "r", MayMakeSnapshots: true})
	if _, err := reader.Newest(t.Context()); !errors.Is(err, ErrNoSnapshot) {
		t.Fatalf("before the first: err = %v, want %v", err, ErrNoSnapshot)
	}
	if err := reader.Offer(t.Context(), vfs.Disk{}, w.dir, nil, Snapshot{Version: 1}); !errors.Is(err, ErrNotMaker) {
		t.Fatalf("who does not make them: err = %v, want %v", err, ErrNotMaker)
	}
	w.file("history-1.blocks", partBytes+5)
	for i, state := range []string{"a.state", "b.state", "c.state"} {
		w.mustCommit(w.random, 3, 10)
		w.file(state, 1000*(i+1))
		// Of a record in the middle of its commit.
		shot := w.shot()
		middle := w.has()[len(w.has())-2]
		shot.Version, shot.StateHash = middle.Version, middle.StateHash
		if err := w.Offer(t.Context(), vfs.Disk{}, w.dir, []string{"history-1.blocks", state}, shot); err != nil {
			t.Fatal(err)
		}
		m, err := reader.Newest(t.Context())
		if err != nil || m.Version != middle.Version {
			t.Fatalf("the newest is of version %v (%v), want %d", m, err, middle.Version)
		}
		dir := t.TempDir()
		if err := reader.Fetch(t.Context(), m, vfs.Disk{}, dir, nil); err != nil {
			t.Fatal(err)
		}
		w.mustHold(dir, "history-1.blocks", state)
		// A node goes on from there.
		n := follow(t, open(t, s.URLs(), Config{Stream: "shots", NodeID: "n"}), w.has()[:m.Version])
		n.waitFor(pointAfter(w.has()).Version)
		n.Close()
	}
	// The two newest are there, with what they name; of the stream, what is behind the older one.
	if o := w.objects(t); len(o.held) != 2+2+2 || len(o.versions()) != 2 {
		t.Errorf("%d objects, manifests of %v", len(o.held), o.versions())
	}
	named(t, s, Config{Stream: "shots", NodeID: "n"}, nil, ErrPurged)
	if r, err := reader.RecordAt(t.Context(), 5); err != nil || r.StateHash != w.has()[4].StateHash {
		t.Errorf("the record of the older snapshot: %v", err)
	}

	// What was being stored when a node died goes with the next.
	orphan := w.objects(t).chunkSubject("orphan")
	if _, err := w.js.Publish(t.Context(), orphan, []byte("x")); err != nil {
		t.Fatal(err)
	}
	// A part that lost a message is sent again.
	o := w.objects(t)
	lame := o.held[(&File{Name: "history-1.blocks", Parts: []PartHash{hashOf(mustRead(t, filepath.Join(w.dir, "history-1.blocks"))[:partBytes])}}).object(0)]
	if lame == nil {
		t.Fatal("the first part is not there")
	}
	if err := o.stream.Purge(t.Context(), jetstream.WithPurgeSubject(o.chunkSubject(lame.NUID)), jetstream.WithPurgeKeep(3)); err != nil {
		t.Fatal(err)
	}
	w.mustCommit(w.random, 1, 1)
	w.mustOffer("history-1.blocks", "c.state")
	if o := w.objects(t); o.chunks["orphan"] != 0 || !o.whole(lame.Name, partBytes) {
		t.Errorf("the orphan has %d messages, the first part is whole: %t", o.chunks["orphan"], o.whole(lame.Name, partBytes))
	}
	m, err := reader.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := reader.Fetch(t.Context(), m, vfs.Disk{}, dir, nil); err != nil {
		t.Fatal(err)
	}
	w.mustHold(dir, "history-1.blocks", "c.state")

	// The other node makes them when this one ends.
	w.Close()
	eventually(t, "the reader makes the snapshots", reader.MakesSnapshots)
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// testFetchGoesOn cuts a fetch after its first part, damages one that it had, and lets it begin anew.
func testFetchGoesOn(t *testing.T, s suite) {
	w := newShooter(t, s, "cut")
	w.mustCommit(w.random, 2, 10)
	w.file("big.state", 3*partBytes+1)
	w.file("small.state", 10)
	w.mustOffer("small.state", "big.state")
	proxy := natstest.NewProxy(t, s.Addr(2))
	reader := open(t, []string{"nats://" + proxy.Addr()}, Config{Stream: "cut", NodeID: "r"})
	m, err := reader.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	err = reader.Fetch(ctx, m, vfs.Disk{}, dir, func(done, total int64) {
		if done > 2*partBytes {
			proxy.Cut()
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("the fetch that was cut: err = %v", err)
	}
	part := filepath.Join(dir, "big.state"+fetchSuffix)
	half := mustRead(t, part)
	half[partBytes+7] ^= 1
	if err := os.WriteFile(part, half, 0o600); err != nil {
		t.Fatal(err)
	}
	proxy.Heal()
	var told int64
	if err := reader.Fetch(t.Context(), m, vfs.Disk{}, dir, func(done, _ int64) { told = done }); err != nil {
		t.Fatal(err)
	}
	w.mustHold(dir, "small.state", "big.state")
	if told != m.Bytes() {
		t.Errorf("%d bytes told; want %d", told, m.Bytes())
	}
}

// testCorruptPartIsRefused stores something else in the place of a part, and another record in that of a manifest's.
func testCorruptPartIsRefused(t *testing.T, s suite) {
	w := newShooter(t, s, "corrupt")
	w.mustCommit(w.random, 2, 10)
	w.file("a.state", 5000)
	w.mustOffer("a.state")
	m, err := w.Newest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := w.objects(t)
	name := m.Files[0].object(0)
	dir := t.TempDir()
	for what, content := range map[string][]byte{"another": make([]byte, 5000), "a shorter": make([]byte, 4), "a longer": make([]byte, 5001)} {
		if err := o.put(t.Context(), w.Cluster, name, content); err != nil {
			t.Fatal(err)
		}
		if err := w.Fetch(t.Context(), m, vfs.Disk{}, dir, nil); !errors.Is(err, errBadPart) {
			t.Errorf("%s part: err = %v, want %v", what, err, errBadPart)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) > 1 || len(all) == 1 && !strings.HasSuffix(all[0].Name(), fetchSuffix) {
		t.Errorf("the directory holds %v", all)
	}
	if bad, failures := w.stats.partsBad.Get(), w.stats.fetchFailures.Get(); bad != 3 || failures != 3 {
		t.Errorf("%d bad parts, %d failures", bad, failures)
	}
	other := *m
	other.Record = codec.AppendRecord(nil, commitOf(w.random, ledger.LogPoint{Version: 1}, 1, 1)[0])
	if err := w.Fetch(t.Context(), &other, vfs.Disk{}, dir, nil); !errors.Is(err, ErrOtherLedger) {
		t.Errorf("another record: err = %v, want %v", err, ErrOtherLedger)
	}
	lying := w.shot()
	lying.StateHash[0]++
	if err := w.Offer(t.Context(), vfs.Disk{}, w.dir, []string{"a.state"}, lying); !errors.Is(err, ErrOtherLedger) {
		t.Errorf("an offer of another state: err = %v, want %v", err, ErrOtherLedger)
	}
}

// TestHostileManifestsAreRefused names what no maker names.
func TestHostileManifestsAreRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 0))
	record := commitOf(random, ledger.LogPoint{}, 1, 1)[0]
	good := Manifest{
		Format: 1, Ledger: "id", Snapshot: Snapshot{Version: 1, StateHash: record.StateHash}, Record: codec.AppendRecord(nil, record),
		Files: []File{{"a.state", 10, make([]PartHash, 1)}},
	}
	tests := map[string]func(*Manifest){
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
	}
	for name, change := range tests {
		m := good
		m.Files = append([]File(nil), good.Files...)
		change(&m)
		b, err := json.Marshal(&m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(b); (err == nil) != (name == "") {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	if v, ok := manifestVersion(manifestName(77)); !ok || v != 77 {
		t.Errorf("manifestVersion(%s) = %d, %t", manifestName(77), v, ok)
	}
}
