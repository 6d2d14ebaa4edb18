package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ledgerd/engine/cluster"
	"ledgerd/engine/cluster/natstest"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestExchange runs what needs a stream on the same server.
func TestExchange(t *testing.T) {
	s := natstest.Start(t, 1)
	for name, run := range map[string]func(*testing.T, *natstest.Servers){
		"a snapshot is offered and fetched":       testSnapshotIsOfferedAndFetched,
		"a fetch goes on where it was cut":        testFetchGoesOn,
		"another peer goes on":                    testAnotherPeerGoesOn,
		"parts that are held are read once":       testPartsThatAreHeldAreReadOnce,
		"no peer harms who asks it":               testNoPeerHarmsWhoAsksIt,
		"what others cannot fetch is not offered": testUnreachableSnapshotIsNotOffered,
		"what a disk lost is not offered":         testLostSnapshotIsNotOffered,
		"what cannot be read is passed over":      testUnreadableManifestIsPassedOver,
		"a fetch is overtaken":                    testFetchIsOvertaken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, s)
		})
	}
}

// node is a node's exchange, and the listener on which others ask it.
type node struct {
	*Exchange
	dir   string
	asked atomic.Int64                     // parts that others asked for
	serve atomic.Pointer[http.HandlerFunc] // in place of its files
}

// open opens the exchange of a node beside a stream.
func open(t *testing.T, config cluster.Config) *node {
	t.Helper()
	config.Logger, config.Replicas = slog.New(slog.DiscardHandler), 1
	c, err := cluster.Open(config)
	must(t, err)
	t.Cleanup(c.Close)
	n := &node{dir: t.TempDir()}
	files := http.StripPrefix(Path, http.FileServer(http.Dir(n.dir)))
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.asked.Add(1)
		if instead := n.serve.Load(); instead != nil {
			(*instead)(w, r)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	n.Exchange = New(c, listener.URL, nil)
	t.Cleanup(n.client.CloseIdleConnections)
	return n
}

// maker is a writer that offers snapshots, of files that are no snapshots.
type maker struct {
	*node
	t       *testing.T
	random  *rand.ChaCha8
	records []*ledger.Record
}

func newMaker(t *testing.T, s *natstest.Servers, stream string) *maker {
	t.Helper()
	n := open(t, cluster.Config{Servers: s.URLs(), Stream: stream, NodeID: "maker", MayWrite: true})
	must(t, n.cluster.Log().Follow(t.Context(), ledger.LogPoint{}, func([]*ledger.Record) error { return nil }))
	return &maker{node: n, t: t, random: rand.NewChaCha8([32]byte{8})}
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

// mustOffer offers a snapshot of files in the maker's directory, which is the newest one then.
func (w *maker) mustOffer(what Snapshot, names ...string) *Manifest {
	w.t.Helper()
	must(w.t, w.Offer(w.t.Context(), vfs.Disk{}, w.dir, names, what))
	return w.offered(what.Version)[0]
}

// next commits one record and offers a snapshot that is the state after it.
func (w *maker) next(names ...string) *Manifest {
	w.t.Helper()
	w.commit(1)
	return w.mustOffer(w.newest(), names...)
}

// offered returns the snapshots that are offered. It fails unless they are of the versions.
func (w *maker) offered(versions ...ledger.Version) []*Manifest {
	w.t.Helper()
	all, err := w.Offered(w.t.Context())
	for i, v := range versions {
		if err != nil || i >= len(all) || all[i].Version != v {
			w.t.Fatalf("%d are offered (%v), the one at %d should be of version %d", len(all), err, i, v)
		}
	}
	return all
}

// fetch has a node fetch the newest snapshot that is offered into its directory.
func (w *maker) fetch(n *node) error {
	w.t.Helper()
	all, err := n.Offered(w.t.Context())
	must(w.t, err)
	return n.Fetch(w.t.Context(), all[0], vfs.Disk{}, n.dir, func(int64, int64) {})
}

// mustFetch fetches into an empty directory what is the newest snapshot, of the maker's files alone.
func (w *maker) mustFetch(n *node, names ...string) {
	w.t.Helper()
	n.clear(w.t)
	must(w.t, w.fetch(n))
	w.mustHold(n.dir, names...)
}

// clear empties the node's directory.
func (n *node) clear(t *testing.T) {
	t.Helper()
	must(t, vfs.Clear(vfs.Disk{}, n.dir))
	must(t, os.MkdirAll(n.dir, 0o700))
}

// mustHold fails unless a directory holds the maker's files, and nothing else.
func (w *maker) mustHold(dir string, names ...string) {
	w.t.Helper()
	for _, name := range names {
		want, got := ledgertest.ReadFile(w.t, filepath.Join(w.dir, name)), ledgertest.ReadFile(w.t, filepath.Join(dir, name))
		ledgertest.MustHold(w.t, bytes.Equal(got, want), "%s: %d bytes, want the maker's %d", name, len(got), len(want))
	}
	all, err := os.ReadDir(dir)
	ledgertest.MustHold(w.t, err == nil && len(all) == len(names), "the directory holds %v (%v), want %v", all, err, names)
}

func reader(t *testing.T, s *natstest.Servers, stream, name string) *node {
	t.Helper()
	return open(t, cluster.Config{Servers: s.URLs(), Stream: stream, NodeID: name})
}

func testSnapshotIsOfferedAndFetched(t *testing.T, s *natstest.Servers) {
	w, r := newMaker(t, s, "shots"), reader(t, s, "shots", "r")
	_, err := r.Offered(t.Context())
	ledgertest.ErrorIs(t, err, ErrNoSnapshot, "before the first")
	const history = "history-1.blocks"
	w.file(history, partBytes+5)
	for i, state := range []string{"a.state", "b.state", "c.state"} {
		w.commit(3)
		w.file(state, 1000*(i+1))
		v := ledger.Version(len(w.records) - 1) // in the middle of its commit
		w.mustOffer(w.at(v), history, state)
		w.mustFetch(r, history, state)
		// A node goes on from there.
		n := reader(t, s, "shots", "n")
		err = n.cluster.Log().Follow(t.Context(), ledger.PointAfter(w.records[v-1]), func(commit []*ledger.Record) error {
			ledgertest.Equal(t, commit[0].Version, v+1, "the version that follows the snapshot")
			return io.EOF
		})
		ledgertest.ErrorIs(t, err, io.EOF, "Follow")
	}
	// The two newest are offered; of the stream there is what is after the older one.
	ledgertest.Equal(t, len(w.offered(8, 5)), 2, "snapshots that are offered")
	_, err = w.cluster.RecordAt(t.Context(), 3)
	ledgertest.ErrorIs(t, err, cluster.ErrPurged, "a record before the older snapshot")
	if r, err := w.cluster.RecordAt(t.Context(), 5); err != nil || r.StateHash != w.records[4].StateHash {
		t.Errorf("the record of the older snapshot: %v", err)
	}

	// Who fetched one gives it to others, until nobody can begin with it any more.
	must(t, r.Share(t.Context(), w.offered(8)[0]))
	ledgertest.Equal(t, len(w.offered(8, 8, 5)), 3, "snapshots that are offered when another node has one, too")
	for range 2 {
		w.next(history, "c.state")
	}
	ledgertest.Equal(t, len(w.offered(11, 10)), 2, "snapshots that are offered when the stream was purged past the other node's")

	lying := w.newest()
	lying.StateHash[0]++
	ledgertest.ErrorIs(t, w.Offer(t.Context(), vfs.Disk{}, w.dir, []string{"c.state"}, lying), cluster.ErrOtherLedger, "an offer of another state")
}

// testFetchGoesOn ends a fetch after its first part, damages one that it had, and lets it begin anew.
func testFetchGoesOn(t *testing.T, s *natstest.Servers) {
	w, r := newMaker(t, s, "cut"), reader(t, s, "cut", "r")
	w.file("big.state", 3*partBytes+1)
	w.file("small.state", 10)
	m := w.next("small.state", "big.state")
	ctx, cancel := context.WithCancel(t.Context())
	err := r.Fetch(ctx, m, vfs.Disk{}, r.dir, func(done, total int64) {
		if done > 2*partBytes {
			cancel()
		}
	})
	ledgertest.ErrorIs(t, err, context.Canceled, "the fetch that was cut")
	part := filepath.Join(r.dir, "big.state"+vfs.TemporarySuffix)
	half := ledgertest.ReadFile(t, part)
	half[partBytes+7] ^= 1
	must(t, os.WriteFile(part, half, 0o600))
	before, told := w.asked.Load(), int64(0)
	must(t, r.Fetch(t.Context(), m, vfs.Disk{}, r.dir, func(done, _ int64) { told = done }))
	w.mustHold(r.dir, "small.state", "big.state")
	ledgertest.Equal(t, w.asked.Load()-before, 3, "parts that are asked for again: one is damaged, two are missing")
	ledgertest.Equal(t, told, m.Bytes(), "bytes that are told")
}

// testFetchIsOvertaken has the stream purged past a snapshot while that is fetched: nobody could go on from there.
func testFetchIsOvertaken(t *testing.T, s *natstest.Servers) {
	w, r := newMaker(t, s, "overtaken"), reader(t, s, "overtaken", "r")
	w.file("a.state", 10)
	m := w.next("a.state")
	w.commit(1)
	overtaken := false
	err := r.Fetch(t.Context(), m, vfs.Disk{}, r.dir, func(done, total int64) {
		if done == total && !overtaken {
			overtaken = true
			w.next("a.state")
			w.next("a.state")
		}
	})
	ledgertest.ErrorIs(t, err, cluster.ErrPurged, "the fetch of a snapshot that nobody can begin with any more")
	must(t, w.fetch(r))
}

// testAnotherPeerGoesOn has a node fail in the middle of what is fetched from it. Another one gives what is missing of the same file.
func testAnotherPeerGoesOn(t *testing.T, s *natstest.Servers) {
	w, other, r := newMaker(t, s, "peers"), reader(t, s, "peers", "b"), reader(t, s, "peers", "r")
	w.file("a.state", 3*partBytes)
	m := w.next("a.state")
	w.mustFetch(other, "a.state")
	must(t, other.Share(t.Context(), m))
	gone := http.HandlerFunc(http.NotFound)
	err := r.Fetch(t.Context(), m, vfs.Disk{}, r.dir, func(done, _ int64) {
		if done > 0 {
			w.serve.Store(&gone)
		}
	})
	ledgertest.ErrorIs(t, err, ErrNoPeer, "the node is gone")
	must(t, w.fetch(r)) // the other one's, which is offered first
	w.mustHold(r.dir, "a.state")
	ledgertest.Equal(t, other.asked.Load(), 2, "parts that the other is asked for")
	ledgertest.Equal(t, r.fetchFailures.Get(), 1, "failures")
}

// testPartsThatAreHeldAreReadOnce has a node try again and again while nobody gives a part: what it has is not read each time. What was removed
// meanwhile, or is of another snapshot, is fetched.
func testPartsThatAreHeldAreReadOnce(t *testing.T, s *natstest.Servers) {
	w, r := newMaker(t, s, "again"), reader(t, s, "again", "r")
	w.file("history.blocks", partBytes+1)
	w.file("a.state", 2*partBytes)
	w.next("history.blocks", "a.state")
	must(t, w.fetch(r))
	lacks := http.HandlerFunc(func(rw http.ResponseWriter, q *http.Request) {
		if q.URL.Path == Path+"a.state" {
			http.NotFound(rw, q)
			return
		}
		http.ServeFile(rw, q, filepath.Join(w.dir, "history.blocks"))
	})
	w.serve.Store(&lacks)
	must(t, os.Truncate(filepath.Join(r.dir, "a.state"), partBytes))
	disk := &countingDisk{}
	for try, want := range []int{partBytes + 1 + partBytes, 0, 0} { // of both files, and nothing of the part that is missing
		disk.read = 0
		err := r.Fetch(t.Context(), w.offered(1)[0], disk, r.dir, func(int64, int64) {})
		ledgertest.ErrorIs(t, err, ErrNoPeer, "the part that is missing")
		ledgertest.Equal(t, disk.read, want, "bytes that try %d reads of what is there", try)
	}
	must(t, os.Remove(filepath.Join(r.dir, "history.blocks")))
	ledgertest.ErrorIs(t, w.fetch(r), ErrNoPeer, "the part that is missing, where a file was removed")
	must(t, os.Remove(filepath.Join(r.dir, "a.state"+vfs.TemporarySuffix)))
	w.mustHold(r.dir, "history.blocks")
	w.file("history.blocks", partBytes+2)
	w.serve.Store(nil)
	w.next("history.blocks", "a.state")
	must(t, w.fetch(r))
	w.mustHold(r.dir, "history.blocks", "a.state")
}

// countingDisk counts the bytes that are read of files that were there.
type countingDisk struct {
	vfs.Disk
	read int
}

func (d *countingDisk) OpenWrite(name string) (vfs.File, error) {
	f, err := d.Disk.OpenWrite(name)
	return countingFile{f, d}, err
}

type countingFile struct {
	vfs.File
	disk *countingDisk
}

func (f countingFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(b, off)
	f.disk.read += n
	return n, err
}

// testNoPeerHarmsWhoAsksIt has a peer do what none should. What it leads astray is asked of nobody else, and told no secret.
func testNoPeerHarmsWhoAsksIt(t *testing.T, s *natstest.Servers) {
	w, r := newMaker(t, s, "hostile"), reader(t, s, "hostile", "r")
	w.file("a.state", 5000)
	w.next("a.state")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a peer sends it elsewhere, and it goes") }))
	defer elsewhere.Close()
	released := make(chan struct{})
	defer close(released)
	gives := func(status int, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write(body)
		}
	}
	for what, serve := range map[string]http.HandlerFunc{
		"other bytes":   gives(http.StatusPartialContent, make([]byte, 5000)),
		"fewer bytes":   gives(http.StatusPartialContent, make([]byte, 4)),
		"no bytes":      gives(http.StatusPartialContent, nil),
		"all of a file": gives(http.StatusOK, make([]byte, 5000)),
		"a refusal":     gives(http.StatusServiceUnavailable, nil),
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"no answer": func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-released:
			case <-r.Context().Done():
			}
		},
		"an answer without end": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		},
	} {
		asked := w.asked.Load()
		w.serve.Store(&serve)
		if r.timeout = partTimeout; what == "no answer" {
			r.timeout = time.Second
		}
		ledgertest.ErrorIs(t, w.fetch(r), ErrNoPeer, "a peer that gives %s", what)
		ledgertest.Equal(t, w.asked.Load()-asked, 1, "how often a peer is asked that gives %s", what)
	}
	ledgertest.Equal(t, r.partsBad.Get(), 2, "bad parts")
	if all, _ := os.ReadDir(r.dir); len(all) > 1 || len(all) == 1 && !strings.HasSuffix(all[0].Name(), vfs.TemporarySuffix) {
		t.Errorf("the directory holds %v", all)
	}
	other := *w.offered(1)[0]
	other.Record = codec.AppendRecord(nil, &ledger.Record{Version: 1, Kind: ledger.StatusRecord, Status: ledger.StatusConfirmed, Slot: 9, FirstSeq: 1})
	ledgertest.ErrorIs(t, r.Fetch(t.Context(), &other, vfs.Disk{}, r.dir, func(int64, int64) {}), cluster.ErrOtherLedger, "another record")
}

// testUnreachableSnapshotIsNotOffered has others ask in vain, or somebody else. The stream is not purged.
func testUnreachableSnapshotIsNotOffered(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "unreachable")
	w.file("a.state", 1000)
	offer := func() error {
		w.commit(1)
		return w.Offer(t.Context(), vfs.Disk{}, w.dir, []string{"a.state"}, w.newest())
	}
	must(t, offer())
	gone := http.HandlerFunc(http.NotFound)
	w.serve.Store(&gone)
	ledgertest.ErrorSays(t, offer(), "other nodes could not fetch it from http://", "a listener that does not give it")
	own := w.address
	for _, address := range []string{"http://127.0.0.1:1", "http://who:secret@127.0.0.1:1", "ftp://127.0.0.1"} {
		w.address = address
		if err := offer(); err == nil {
			t.Errorf("a snapshot at %s is offered", address)
		}
	}
	if w.offering.Load() || w.offerFailures.Get() != 4 {
		t.Errorf("it offers: %t, %d failures", w.offering.Load(), w.offerFailures.Get())
	}
	ledgertest.Equal(t, len(w.offered(1)), 1, "snapshots that are offered")
	_, err := w.cluster.RecordAt(t.Context(), 1)
	must(t, err)
	w.serve.Store(nil)
	w.address = own
	must(t, offer())
	w.offered(6, 1)
}

// testLostSnapshotIsNotOffered takes the older snapshot from the maker's disk, which then offers the newer one alone, and lets the
// stream be.
func testLostSnapshotIsNotOffered(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "lost")
	for i, name := range []string{"a.state", "b.state", "c.state"} {
		w.file(name, 1000+i)
		w.next(name)
		must(t, os.Truncate(filepath.Join(w.dir, name), 10))
	}
	ledgertest.Equal(t, len(w.offered(3)), 1, "snapshots that are offered")
	_, err := w.cluster.RecordAt(t.Context(), 1)
	must(t, err)
}

// testUnreadableManifestIsPassedOver puts what no program of today writes in the place of a node's offer. It is told where there is nothing
// else, never removed, and does not keep anybody from what other nodes offer.
func testUnreadableManifestIsPassedOver(t *testing.T, s *natstest.Servers) {
	w := newMaker(t, s, "unreadable")
	w.commit(1)
	kv, _, err := w.list(t.Context())
	must(t, err)
	_, err = kv.Put(t.Context(), "newer", []byte(`[{"format":3}]`))
	must(t, err)
	_, err = w.Offered(t.Context())
	ledgertest.ErrorIs(t, err, ErrNoSnapshot, "one that cannot be read")
	ledgertest.ErrorSays(t, err, "that of node newer: the stream was written by a newer program", "one that cannot be read")
	w.file("a.state", 10)
	m := *w.mustOffer(w.newest(), "a.state")
	for node, change := range map[string]func(*Manifest){
		"stranger": func(m *Manifest) { m.Ledger, m.Node = "of another stream", "stranger" },
		"liar":     func(m *Manifest) { m.Version++ },
		"thief":    func(*Manifest) {}, // it says to be the maker
	} {
		other := m
		change(&other)
		b, err := json.Marshal([]*Manifest{&other})
		must(t, err)
		_, err = kv.Put(t.Context(), node, b)
		must(t, err)
	}
	ledgertest.Equal(t, len(w.offered(1)), 1, "snapshots that are offered")
	for range 2 {
		w.next("a.state")
	}
	_, all, err := w.list(t.Context())
	must(t, err)
	for node, want := range map[string]bool{"maker": true, "newer": true, "liar": true, "stranger": false, "thief": false} {
		_, there := all[node]
		ledgertest.Equal(t, there, want, "whether what %s offers is still there", node)
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// TestHostileManifestsAreRefused names what no node names: an entry of testdata/manifests.txt changes fields of a manifest that is good.
func TestHostileManifestsAreRefused(t *testing.T) {
	record := &ledger.Record{Version: 1, Kind: ledger.StatusRecord, Status: ledger.StatusConfirmed, Slot: 1, FirstSeq: 1}
	ledgertest.Scenes(t, "testdata/manifests.txt", "# ", *update, func(t *testing.T, scene string) string {
		m := Manifest{
			Format: 2, Ledger: "id", Address: "http://127.0.0.1:8081", Snapshot: Snapshot{Version: 1, StateHash: record.StateHash},
			Record: codec.AppendRecord(nil, record), Files: []File{{"a.state", 10, make([]string, 1)}},
		}
		entry, _, _ := strings.Cut(scene, "\n\t")
		_, changes, _ := strings.Cut(entry, "\n")
		must(t, json.Unmarshal([]byte(changes), &m))
		b, err := json.Marshal([]*Manifest{&m})
		must(t, err)
		outcome := "it is read"
		if _, err := decodeManifests(b); err != nil {
			outcome = err.Error()
		}
		return "# " + entry + "\n\t" + outcome + "\n\n"
	})
	for _, b := range []string{"", "{}", "[null]", "[1]", "[]x"} {
		if _, err := decodeManifests([]byte(b)); err == nil {
			t.Errorf("%q is read", b)
		}
	}
}

// Of a directory with snapshots only whole files of them are shown.
func TestOnlyFilesOfSnapshotsAreShown(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"snapshot-1.state", "a" + vfs.TemporarySuffix, ".hidden"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	for name, want := range map[string]error{
		"snapshot-1.state": nil, "a" + vfs.TemporarySuffix: os.ErrNotExist, ".hidden": os.ErrNotExist,
		"../" + filepath.Base(dir) + "/snapshot-1.state": os.ErrNotExist, "": os.ErrNotExist, ".": os.ErrNotExist, "none": os.ErrNotExist,
	} {
		f, err := Open(vfs.Disk{}, dir, name)
		ledgertest.ErrorIs(t, err, want, "Open(%q)", name)
		if err == nil {
			must(t, f.Close())
		}
	}
}

var must = ledgertest.Must
