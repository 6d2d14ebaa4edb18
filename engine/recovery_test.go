package engine

import (
	"crypto/sha256"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// restarts is a node that is stopped and started again, on a disk, in the middle of a stream.
type restarts struct {
	*followed
	t      *testing.T
	s      stream
	g      *generator
	disk   *vfstest.Memory
	shown  []ledger.Event        // since the beginning
	all    []*ledger.Publication // with records, since the beginning
	times  int
	config Config
}

// show shows the next event, if there is one, and lets time pass now and then.
func (r *restarts) show() {
	e := r.g.next()
	if e == nil {
		return
	}
	r.g.m.event(e)
	r.shown = append(r.shown, e)
	r.send(e)
	for _, p := range r.published[r.next:] {
		if len(p.Records) > 0 {
			r.all = append(r.all, p)
		}
	}
	r.publications(r.published)
	if r.g.chance(30) {
		time.Sleep(time.Duration(r.g.r.IntN(int(foldAfter))))
	}
}

// start runs the node on the disk as it stands, and holds what it answers against the model.
func (r *restarts) start() {
	r.t.Helper()
	old := r.followed
	f := r.s.follow(r.t, r.g.r, r.g.m, onDisk(r.t, r.disk, r.config))
	n, c := f.subject, f.comparer
	r.followed = &f
	if old == nil {
		return
	}
	synctest.Wait()
	if n.hasEnded() {
		r.t.Fatalf("restart %d: %v", r.times, n.err)
	}
	c.version, c.floor, c.next = r.g.m.version(), old.floor, len(n.published)
	if len(r.g.m.chain) == 0 {
		return
	}
	head, was, want := n.Head(), old.Head(), r.g.m.points[r.g.m.version()]
	if head == nil || head.Tips != want.tips || head.Floor != was.Floor && !(c.archived && head.Floor > was.Floor) || head.Root != was.Root || head.StateHash != was.StateHash {
		r.t.Fatalf("restart %d: stands at %+v, before it did at %+v, want %+v: %s", r.times, head, was, want.tips, n.Status().Unhealthy)
	}
	if got, was := n.Oldest(), old.Oldest(); got > was {
		r.t.Fatalf("restart %d: clients can resume after update %d, before they could after %d", r.times, got, was)
	}
	c.held[head] = want
	c.answers(n.Engine, nil)
	r.showAgain()
}

// showAgain shows what a source shows that goes on from the finalized block. None of it changes anything, and what
// only the memory of the node knew is known again.
func (r *restarts) showAgain() {
	r.t.Helper()
	finalized, passed, logged := r.g.m.finalizedSlot(), false, r.inLog()
	for _, e := range r.shown {
		switch e := e.(type) {
		case *ledger.Block:
			if e.Slot < finalized || e.Status >= ledger.Confirmed && r.g.possible(e) == nil {
				continue // the latter is a contradiction of what is final by now
			}
			passed = passed || e == r.g.m.chain[r.g.m.finalized].Block
		case *ledger.BaseState:
			if !passed || !logged[sha256.Sum256(codec.AppendEvent(nil, e))] { // what the log holds no more may be learned again
				continue
			}
		case *ledger.SlotStatus:
			if e.Slot <= finalized || e.Status == ledger.StatusDead && !logged[e.Blockhash.Value] {
				continue
			}
		}
		r.send(e)
		if len(r.published) > r.next && len(r.published[r.next].Records) > 0 {
			r.t.Fatalf("restart %d: %T %+v came again, and led to record %+v", r.times, e, e, r.published[r.next].Records[0])
		}
		r.publications(r.published)
	}
}

// inLog returns what the log still holds of base states, by their digests, and of dead blocks, by their hashes.
func (r *restarts) inLog() map[[32]byte]bool {
	r.t.Helper()
	all := make(map[[32]byte]bool)
	for _, record := range logged(r.t, r.disk, 0) {
		switch {
		case record.Base != nil:
			all[sha256.Sum256(codec.AppendEvent(nil, record.Base))] = true
		case record.Status == ledger.StatusDead:
			all[record.Hash] = true
		}
	}
	return all
}

// logged returns the records that lie in the log on a disk, from a version on.
func logged(t *testing.T, disk vfs.FS, from ledger.Version) (all []*ledger.Record) {
	t.Helper()
	_, err := wal.NewReader(disk, datadir.LogDir("data"), from).Read(t.Context(), func(commit []wal.Entry) error {
		for i := range commit {
			all = append(all, commit[i].Record)
		}
		return nil
	})
	must(t, err)
	return all
}

// again stops the node in one way or another and starts it on what the disk kept.
func (r *restarts) again() {
	r.t.Helper()
	r.times++
	if way := r.g.r.IntN(4); way > 0 { // a power cut, and whatever it leaves; else a clean stop
		r.disk = r.disk.Crash([]float64{0, 0.5, 1}[way-1], r.g.r.Uint64())
	}
	r.close()
	mustVerify(r.t, r.disk)
	r.config.Shards = 1 + r.g.r.IntN(4)
	r.start()
	holdHistory(r.t, r.Engine, r.all)
}

// mustVerify recomputes the state hash of every snapshot from what it holds: it must be what the
// node had at that block while it went on.
func mustVerify(t *testing.T, disk vfs.FS) {
	t.Helper()
	store := snapshot.ViewStore(disk, datadir.SnapshotDir("data"), slog.New(slog.DiscardHandler))
	all, err := store.List()
	must(t, err)
	for _, i := range all {
		snap, err := store.Open(i)
		if err == nil {
			err = snap.Verify(t.Context(), snapshot.Pace{})
		}
		if err != nil {
			t.Fatalf("%s: %v", i.Name, err)
		}
	}
}

// F1, F10, F12, F22, F23: TestRestartAnswersTheSame follows random streams and stops the node again and again, cleanly
// or by a power cut: after each start it answers exactly as before, of its history too, and goes on as if
// nothing had been. What is left at the end can be exported.
func TestRestartAnswersTheSame(t *testing.T) { eachStream(t, sample(20, 1, 1), followRestarts) }

func followRestarts(t *testing.T, s stream, seed uint64, _ int) {
	r := &restarts{t: t, s: s, g: s.generator(seed, true), disk: vfstest.NewMemory(), config: Config{
		SnapshotInterval: time.Second, SegmentBytes: 16 << 10, Shards: 2,
	}}
	if seed%2 == 0 && s.retention.Bytes >= 1<<30 { // memory drops nothing for want of bytes, so all of it comes to the archive
		r.config.HistoryBytes, r.config.HistoryBlocks = 1<<30, 1+r.g.r.IntN(6)
	}
	r.start()
	for range sample(streamEvents, streamEvents/2, streamEvents/2) {
		if r.show(); len(r.g.m.chain) > 0 && r.g.chance(8) {
			r.again()
		}
	}
	r.answers(r.Engine, nil)
	t.Logf("%d restarts, %d records, %d snapshots in the last run, memory from slot %d on, history from %d", r.times, len(r.g.m.records), r.Stats().Snapshot.Count, r.Head().Floor, r.Stats().HistoryFrom)
	holdHistory(t, r.Engine, r.all)
	r.close()
	if r.times == 0 || r.g.m.stopped != "" {
		t.Errorf("the node was restarted %d times; the model stopped: %q", r.times, r.g.m.stopped)
	}
	mustExport(t, s, r.disk, r.subject, r.g.m)
}
