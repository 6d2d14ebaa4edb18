package engine

import (
	"crypto/sha256"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// onDisk returns the configuration of a node whose data directory lies on a disk.
func onDisk(t *testing.T, disk vfs.FS, c Config) Config {
	t.Helper()
	dir, err := datadir.OpenOn(disk, "data")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	c.Dir = dir
	return c
}

// restarts is a node that is stopped and started again, on a disk, in the middle of a stream.
type restarts struct {
	*followed
	t      *testing.T
	s      stream
	g      *generator
	disk   *vfstest.Memory
	shown  []ledger.Event // since the beginning
	times  int
	config Config
	dir    *datadir.Dir
}

// start runs the node on the disk as it stands, and holds what it answers against the model.
func (r *restarts) start() {
	r.t.Helper()
	old := r.followed
	config := onDisk(r.t, r.disk, r.config)
	r.dir = config.Dir
	if err := r.dir.BindFilter(r.s.filter()); err != nil {
		r.t.Fatal(err)
	}
	n := startNode(r.t, r.s.info, config)
	c := newComparer(r.t, r.g.r, r.g.m, r.s.retention)
	r.followed = &followed{n, c}
	for i := range testKeys {
		c.keys = append(c.keys, key(i))
	}
	c.programs, c.wallets = testPrograms(), []ledger.Pubkey{key(0), key(1), key(2), key(778)}
	for i := range testSignatures {
		c.signatures = append(c.signatures, signature(i))
	}
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
	head := n.Head()
	if head == nil {
		r.t.Fatalf("restart %d: nothing is visible, the model is at version %d: %s", r.times, r.g.m.version(), n.Status().Unhealthy)
	}
	want := r.g.m.points[r.g.m.version()]
	for level, tip := range head.Tips {
		if tip != want.tips[level] {
			r.t.Fatalf("restart %d: level %d stands at %+v, want %+v", r.times, level, tip, want.tips[level])
		}
	}
	if head.Floor != old.Head().Floor || head.Root != old.Head().Root || head.StateHash != old.Head().StateHash {
		r.t.Fatalf("restart %d: floor %d, root %d, hash %s, want %d, %d, %s", r.times, head.Floor, head.Root, head.StateHash, old.Head().Floor, old.Head().Root, old.Head().StateHash)
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
	_, err := wal.ReplayBeside(r.t.Context(), r.disk, datadir.LogDir("data"), 0, func(commit []wal.Entry) error {
		for i := range commit {
			switch record := commit[i].Record; {
			case record.Base != nil:
				all[sha256.Sum256(codec.AppendEvent(nil, record.Base))] = true
			case record.Status == ledger.StatusDead:
				all[record.Hash] = true
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// again stops the node in one way or another and starts it on what the disk kept.
func (r *restarts) again() {
	r.t.Helper()
	r.times++
	switch way := r.g.r.IntN(4); way {
	case 0: // a clean stop
		r.mustStop()
		r.dir.Close()
	default: // a power cut, and whatever it leaves
		r.disk = r.disk.Crash([]float64{0, 0.5, 1}[way-1], r.g.r.Uint64())
		r.mustStop()
	}
	mustVerify(r.t, r.disk)
	r.config.Shards = 1 + r.g.r.IntN(4)
	r.start()
}

// mustVerify recomputes the state hash of every snapshot from what it holds: it must be what the
// node had at that block while it went on.
func mustVerify(t *testing.T, disk vfs.FS) {
	t.Helper()
	store := snapshot.ViewStore(disk, datadir.SnapshotDir("data"), slog.New(slog.DiscardHandler))
	all, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
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

// TestRestartAnswersTheSame follows random streams and stops the node again and again, cleanly
// or by a power cut: after each start it answers exactly as before, and goes on as if
// nothing had been.
func TestRestartAnswersTheSame(t *testing.T) {
	for i, s := range streams() {
		t.Run(s.name, func(t *testing.T) {
			for round := range rounds(t, 1) {
				seed := seeded(t, uint64(100*i+round+1)).Uint64()
				bubble.Test(t, func(t *testing.T) { followRestarts(t, s, seed) })
				if t.Failed() {
					return
				}
			}
		})
	}
}

func followRestarts(t *testing.T, s stream, seed uint64) {
	m := s.model()
	r := &restarts{t: t, s: s, g: newGenerator(seed, m), disk: vfstest.NewMemory(), config: Config{
		Retention: s.retention, SnapshotInterval: time.Second, SegmentBytes: 64 << 10, Shards: 2,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}}
	r.g.lossy, r.g.exact, r.g.reopens = s.lossy, true, s.retention.Slots > 1000
	r.start()
	for n := 0; n < streamEvents && m.stopped == ""; n++ {
		e := r.g.next()
		if e == nil {
			continue
		}
		m.event(e)
		r.shown = append(r.shown, e)
		r.send(e)
		r.publications(r.published)
		if r.g.chance(30) {
			time.Sleep(time.Duration(r.g.r.IntN(int(foldAfter))))
		}
		if len(m.chain) > 0 && r.g.chance(8) {
			r.again()
		}
	}
	r.answers(r.Engine, nil)
	t.Logf("%d restarts, %d records, %d snapshots in the last run", r.times, len(m.records), r.Stats().Snapshot.Count)
	r.mustStop()
	if r.times == 0 {
		t.Error("the node was never restarted")
	}
}

// TestDeadBlockStaysDead has a block called dead while it waits for its parent. After a restart the
// source shows it again, and it is still dead.
func TestDeadBlockStaysDead(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, root := diskNode(t, disk, Config{})
		parent := child(root, 101, 0, lamports(key(1), 6))
		dead := child(parent, 102, 0, lamports(key(2), 7))
		n.send(dead, status(dead, ledger.StatusDead), parent)
		n.mustStop()
		n.config.Dir.Close()

		again := startNode(t, live(), onDisk(t, disk, Config{Shards: 1}))
		again.send(parent, dead)
		if got, want := again.Head().Tips[0], n.Head().Tips[0]; got != want {
			t.Errorf("stands at %+v after the restart, want %+v", got, want)
		}
		again.mustStop()
	})
}

// TestSourceNoneShowsWhatTheDiskHolds starts a node without a source on what another left.
func TestSourceNoneShowsWhatTheDiskHolds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		config := onDisk(t, disk, Config{Shards: 2})
		if err := config.Dir.BindSource(live()); err != nil {
			t.Fatal(err)
		}
		n := startNode(t, live(), config)
		root := rootBlock(100, lamports(key(1), 5))
		n.send(root)
		n.send(events(chainOf(root, 5)...)...)
		cut := disk.Crash(0, 1)
		n.mustStop()

		c := onDisk(t, cut, Config{Shards: 3, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		still := &subject{t: t, Engine: New(c), ended: make(chan struct{})}
		go func() {
			defer close(still.ended)
			still.err = still.Run(t.Context())
		}()
		synctest.Wait()
		if still.hasEnded() {
			t.Fatal(still.err)
		}
		if got, want := still.Head(), n.Head(); got.StateHash != want.StateHash || got.Tips != want.Tips {
			t.Errorf("shows %+v, want %+v", got, want)
		}
		if _, _, err := still.Account(ledger.Query{}, key(999)); err == nil || !strings.Contains(err.Error(), "account not found") {
			t.Errorf("an account that a complete source never showed: %v, want not found", err)
		}
		if why := still.Status().Unhealthy; why != "" {
			t.Errorf("health says %q", why)
		}
	})
}
