package cluster

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// testIncompleteSnapshotIsPassedOver takes a part of the newest snapshot away, and a message of another's: who begins is given
// the older one that is whole, and what only a snapshot that is not whole would let go stays in the stream.
func testIncompleteSnapshotIsPassedOver(t *testing.T, s suite) {
	w := newShooter(t, s, "incomplete")
	offer := func(name string) ledger.Version {
		w.mustCommit(w.random, 1, 0)
		w.file(name, 1000)
		w.mustOffer(name)
		return w.shot().Version
	}
	newestIs := func(want ledger.Version) {
		t.Helper()
		if m, err := w.Newest(t.Context()); err != nil || m.Version != want {
			t.Errorf("the newest is %v (%v), want version %d", m, err, want)
		}
	}
	partOf := func(name string) string {
		b := mustRead(t, filepath.Join(w.dir, name))
		return (&File{Name: name, Bytes: int64(len(b)), Parts: []PartHash{hashOf(b)}}).object(0)
	}
	a, b := offer("a.state"), offer("b.state")
	newestIs(b)
	o := w.objects(t)
	if err := o.remove(t.Context(), w.Cluster, o.held[partOf("b.state")]); err != nil {
		t.Fatal(err)
	}
	newestIs(a)
	c := offer("c.state") // b does not count: a is kept, and the stream behind it
	newestIs(c)
	if got := w.objects(t).versions(); len(got) != 2 || got[0] != c || got[1] != a {
		t.Errorf("there are snapshots of %v, want %d and %d", got, c, a)
	}
	if _, err := w.RecordAt(t.Context(), a); err != nil {
		t.Errorf("the record of the snapshot that is kept: %v", err)
	}
	o = w.objects(t)
	if err := o.stream.Purge(t.Context(), jetstream.WithPurgeSubject(o.chunkSubject(o.held[partOf("c.state")].NUID))); err != nil {
		t.Fatal(err)
	}
	newestIs(a)
	o = w.objects(t)
	if err := o.remove(t.Context(), w.Cluster, o.held[partOf("a.state")]); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Newest(t.Context()); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("none is whole: err = %v, want %v", err, ErrNoSnapshot)
	}
}

// closing is a disk that tells when a file is closed.
type closing struct {
	vfs.Disk
	closed func()
}

type closingFile struct {
	vfs.File
	closed func()
}

func (d closing) Open(name string) (vfs.File, error) {
	f, err := d.Disk.Open(name)
	return closingFile{f, d.closed}, err
}

func (f closingFile) Close() error {
	f.closed()
	return f.File.Close()
}

// testMakerThatIsNoneOffersNothing loses the turn when all parts are there.
func testMakerThatIsNoneOffersNothing(t *testing.T, s suite) {
	w := newShooter(t, s, "turns")
	w.mustCommit(w.random, 1, 0)
	w.file("a.state", 1000)
	maker := w.maker
	disk := closing{closed: func() { w.maker = &lease{} }}
	if err := w.Offer(t.Context(), disk, w.dir, []string{"a.state"}, w.shot()); !errors.Is(err, ErrNotMaker) {
		t.Errorf("err = %v, want %v", err, ErrNotMaker)
	}
	w.maker = maker
	if _, err := w.Newest(t.Context()); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("who lost the turn offers: err = %v, want %v", err, ErrNoSnapshot)
	}
}
