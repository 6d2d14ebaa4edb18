package engine

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
	"ledgerd/shard"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// offered are the snapshots that a node offered, with what their files held.
type offered struct {
	snapshot.Written
	Record  []byte   // of the version, encoded
	names   []string // of its files
	content map[string][]byte
}

// offers returns a configuration whose snapshots go to the function.
func offers(c Config, take func(offered)) Config {
	disk := c.Dir.FS()
	c.OnSnapshot = func(ctx context.Context, s snapshot.Written) {
		o := offered{Written: s, content: map[string][]byte{}}
		for _, f := range append(s.Meta.History, snapshot.HistoryRef{Name: s.Name, Bytes: s.Bytes}) {
			b, err := readFile(disk, filepath.Join(c.Dir.SnapshotDir(), f.Name))
			if err != nil || int64(len(b)) != f.Bytes {
				panic(fmt.Sprintf("%s: %d bytes, %v; want %d", f.Name, len(b), err, f.Bytes))
			}
			o.names, o.content[f.Name] = append(o.names, f.Name), b
		}
		_, err := wal.ReplayBeside(ctx, disk, c.Dir.LogDir(), s.Version, func(commit []wal.Entry) error {
			for i := range commit {
				if r := commit[i].Record; r.Version == s.Version {
					o.Record = codec.AppendRecord(nil, r)
				}
			}
			return errEnoughRead
		})
		if !errors.Is(err, errEnoughRead) || o.Record == nil {
			panic(fmt.Sprintf("cannot read record %d: %v", s.Version, err))
		}
		take(o)
	}
	return c
}

// fetch puts the files of a snapshot into a directory as package cluster does: each has its name once
// it is whole.
func (o *offered) fetch(disk vfs.FS) error {
	dir := datadir.SnapshotDir("data")
	if err := disk.MkdirAll(dir); err != nil {
		return err
	}
	for _, name := range o.names {
		if b, err := readFile(disk, filepath.Join(dir, name)); err == nil && string(b) == string(o.content[name]) {
			continue
		}
		made, err := vfs.Replace(disk, filepath.Join(dir, name), func(to vfs.File) error {
			_, err := to.WriteAt(o.content[name], 0)
			return err
		})
		if err != nil {
			return err
		}
		made.Close()
	}
	return nil
}

// readFile returns the content of a file.
func readFile(disk vfs.FS, name string) ([]byte, error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
}

// begin makes a directory that begins with the snapshot.
func (o *offered) begin(ctx context.Context, disk vfs.FS) error {
	d, err := datadir.OpenOn(disk, "data")
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.BindCluster("the ledger", datadir.FactsOf(live(), nil, false)); err != nil {
		return err
	}
	if held, err := d.HoldsRecords(ctx); err != nil || held {
		return err
	}
	if err := o.fetch(disk); err != nil {
		return err
	}
	return datadir.Adopt(ctx, d, o.Record, slog.New(slog.DiscardHandler))
}

// offering returns a shared ledger, its writer, what was sent, and the snapshots that a replica offered of it.
func offering(t *testing.T) (l *sharedLedger, w clusterNode, sent []*ledger.Block, all []offered) {
	t.Helper()
	l = newSharedLedger()
	w = writer(t, l, Config{Shards: 2, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30}})
	maker := startMember(t, l, nil, offers(onDisk(t, vfstest.NewMemory(), Config{
		Shards: 3, SnapshotInterval: time.Second, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30},
	}), func(o offered) { all = append(all, o) }))
	root := rootBlock(100, lamports(key(1), 5), holding(key(51), key(52), key(53), 9))
	sent = append([]*ledger.Block{root}, chainOf(root, 59)...)
	for i, b := range sent {
		b.Accounts = append(b.Accounts, lamports(key(i%20), ledger.Lamports(i+1)), lamports(key(20+i%5), ledger.Lamports(i%2)))
		w.send(b)
		if i >= 8 {
			w.send(status(sent[i-4], ledger.StatusConfirmed), status(sent[i-8], ledger.StatusFinalized))
		}
		time.Sleep(400 * time.Millisecond)
	}
	same(t, "the maker", w.Engine, maker.Engine)
	maker.mustStop()
	if len(all) < 4 {
		t.Fatalf("%d snapshots were offered", len(all))
	}
	return l, w, sent, all
}

func TestReplicaBeginsWithTheSnapshotOfAnother(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, w, _, all := offering(t)
		want := map[ledger.Version]string{}
		for _, r := range l.records() {
			want[r.Version] = string(codec.AppendRecord(nil, r))
		}
		for _, o := range all {
			if string(o.Record) != want[o.Version] {
				t.Fatalf("record %d is not the shared log's", o.Version)
			}
			disk := vfstest.NewMemory()
			if err := o.begin(t.Context(), disk); err != nil {
				t.Fatal(err)
			}
			if err := o.begin(t.Context(), disk); err != nil {
				t.Fatalf("once more: %v", err)
			}
			c := onDisk(t, disk, Config{Shards: 1, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30}})
			replica := startMember(t, l, nil, c)
			same(t, fmt.Sprintf("from record %d", o.Version), w.Engine, replica.Engine)
			checkHeads(t, l, replica.published)
			if newest := readPast(t, replica.Engine, want); newest != w.Head().Tips[0].Version {
				t.Errorf("who comes back with a seq gets up to record %d", newest)
			}
			replica.mustStop()
			c.Dir.Close()
			// It starts again from what it has, without anybody.
			c = onDisk(t, disk, Config{Shards: 2, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30}})
			l.unreachable = true
			again := startMember(t, l, nil, c)
			l.unreachable = false
			same(t, "again", w.Engine, again.Engine)
			if newest := readPast(t, again.Engine, want); newest != w.Head().Tips[0].Version {
				t.Errorf("again: who comes back with a seq gets up to record %d", newest)
			}
			again.mustStop()
			c.Dir.Close()
		}
		w.mustStop()
	})
}

// readPast reads from a node's log all that it offers to who comes back, holds it against the records of the shared
// log, and returns the newest version.
func readPast(t *testing.T, e *Engine, want map[ledger.Version]string) (newest ledger.Version) {
	t.Helper()
	err := e.Past(e.Oldest())(t.Context(), func(p *ledger.Publication) bool {
		for _, r := range p.Records {
			if newest != 0 && r.Version != newest+1 || string(codec.AppendRecord(nil, r)) != want[r.Version] {
				t.Errorf("record %d behind record %d is not the shared log's", r.Version, newest)
			}
			newest = r.Version
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return newest
}

// checkHeads holds every head that was published against what the records of the shared log lead to.
func checkHeads(t *testing.T, l *sharedLedger, published []*ledger.Publication) {
	t.Helper()
	points := map[ledger.Version]*ledger.Head{}
	var trail headTrail
	for _, r := range l.records() {
		points[r.Version] = trail.After([]*ledger.Record{r})
		points[r.Version].StateHash = r.StateHash
	}
	for _, p := range published {
		got := p.Head
		if !got.HasBlock {
			continue
		}
		want := points[got.Tips[0].Version]
		if want == nil || got.StateHash != want.StateHash {
			t.Fatalf("published %+v, want %+v", got, want)
		}
		for level := range got.Tips {
			if x, y := got.Tips[level], want.Tips[level]; x.Slot != y.Slot || x.Hash != y.Hash || x.Seq != y.Seq {
				t.Fatalf("published %+v at level %d, want %+v", x, level, y)
			}
		}
	}
}

// TestAdoptionAtAnyMoment crashes while a replica begins with a snapshot, at every call, and has it go on with the
// same snapshot or another. Before it is done nobody takes what is there for a ledger.
func TestAdoptionAtAnyMoment(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, w, _, all := offering(t)
		pair := []offered{all[1], all[3]}
		stride := 1
		if testing.Short() {
			stride = 5
		}
		for n := 1; ; n += stride {
			memory := vfstest.NewMemory()
			disk := vfstest.NewFaulty(memory, vfstest.Plan{Call: n, Fault: vfstest.Crash})
			first := pair[n/2%2]
			if err := first.begin(t.Context(), disk); !disk.Hit() {
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("call %d is there no more", n)
				break
			}
			for i, share := range []float64{0, 0.5, 1} {
				left := memory.Crash(share, uint64(n))
				held := refusesUnfinished(t, left.Clone())
				o := pair[(n+i)%2]
				if err := o.begin(t.Context(), left); err != nil {
					t.Fatalf("crash at call %d: %v", n, err)
				}
				if held {
					o = first
				}
				left = left.Crash(0, uint64(n)) // what is done is done
				c := onDisk(t, left, Config{Shards: 2, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30}})
				if first, err := c.Dir.FirstRecord(t.Context()); err != nil || first.Version != o.Version {
					t.Fatalf("crash at call %d: begins with %v, %v", n, first, err)
				}
				replica := startMember(t, l, nil, c)
				same(t, fmt.Sprintf("crash at call %d", n), w.Engine, replica.Engine)
				replica.mustStop()
				c.Dir.Close()
			}
		}
		w.mustStop()
	})
}

// refusesUnfinished starts a node on what a crash left of an adoption, and reports whether it was done. If not
// the node holds nothing or says what is the matter, and the directory can be emptied.
func refusesUnfinished(t *testing.T, disk *vfstest.Memory) (held bool) {
	t.Helper()
	l := newSharedLedger()
	l.unreachable = true
	d, err := datadir.OpenOn(disk, "data")
	if err == nil {
		err = d.BindCluster("the ledger", datadir.FactsOf(live(), nil, false))
	}
	if err == nil {
		held, err = d.HoldsRecords(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	c := onDisk(t, disk, Config{Shards: 1})
	n := startMember(t, l, nil, c)
	synctest.Wait()
	switch ended := n.hasEnded(); {
	case held && ended:
		t.Fatalf("it holds a record, and ended: %v", n.err)
	case !held && !ended && n.Head() != nil:
		t.Fatalf("it holds no record, and shows %+v", n.Head())
	case ended && !strings.Contains(n.err.Error(), "begin once more"):
		t.Fatalf("ended: %v", n.err)
	}
	_ = n.stop()
	if !held {
		if err := c.Dir.AbandonBootstrap(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{datadir.LogDir("data"), datadir.SnapshotDir("data")} {
			if names, err := disk.List(dir); len(names) > 0 && err == nil {
				t.Fatalf("%s holds %v", dir, names)
			}
		}
	} else if err := c.Dir.AbandonBootstrap(t.Context()); err == nil {
		t.Fatal("a ledger was removed")
	}
	c.Dir.Close()
	return held
}

func TestAdoptRefusesWhatDoesNotFit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, w, _, all := offering(t)
		w.mustStop()
		o, other := all[1], all[2]
		record := func(change func(*ledger.Record)) []byte {
			r, err := codec.DecodeRecord(o.Record)
			if err != nil {
				t.Fatal(err)
			}
			change(r)
			return codec.AppendRecord(nil, r)
		}
		for name, tt := range map[string]struct {
			record []byte
			want   string
		}{
			"no record":          {[]byte("x"), "its record"},
			"another's record":   {other.Record, "not there"},
			"another state hash": {record(func(r *ledger.Record) { r.StateHash[2]++ }), "state hash"},
			"another seq":        {record(func(r *ledger.Record) { r.FirstSeq++ }), "update"},
		} {
			c := onDisk(t, vfstest.NewMemory(), Config{})
			err := c.Dir.BindCluster("the ledger", datadir.FactsOf(live(), nil, false))
			if err == nil {
				err = o.fetch(c.Dir.FS())
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := datadir.Adopt(t.Context(), c.Dir, tt.record, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
			if err := datadir.Adopt(t.Context(), c.Dir, o.Record, nil); err != nil {
				t.Errorf("%s: then the right one: %v", name, err)
			}
			if err := datadir.Adopt(t.Context(), c.Dir, other.Record, nil); err == nil || !strings.Contains(err.Error(), "holds records already") {
				t.Errorf("%s: then another: %v", name, err)
			}
		}
	})
}

// TestSnapshotOfAnotherStateFencesOff has a replica, and a node that is alone, hold an account of which no record tells
// that it is wrong.
func TestSnapshotOfAnotherStateFencesOff(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l, w, sent, all := offering(t)
		disk := vfstest.NewMemory()
		o := all[1]
		if err := o.begin(t.Context(), disk); err != nil {
			t.Fatal(err)
		}
		c := onDisk(t, disk, Config{Shards: 2, SnapshotInterval: time.Second, Retention: sequencer.Retention{Slots: 30, Bytes: 1 << 30}})
		var told int
		replica := startMember(t, l, nil, offers(c, func(offered) { told++ }))
		replica.falsify(key(51))
		w.send(status(sent[59], ledger.StatusFinalized)) // so that the next snapshot holds it
		time.Sleep(time.Minute)
		w.send(child(sent[59], 300, 0))
		replica.mustHaveFencedItselfOff(disk)
		if told > 0 {
			t.Errorf("%d snapshots were offered", told)
		}
		if got := replica.published[len(replica.published)-1].Head; got.Tips[0].Slot == 300 {
			t.Error("it went on")
		}
		replica.mustStop()
		w.mustStop()
	})
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n, block := diskNode(t, disk, Config{SnapshotInterval: time.Minute})
		block = n.finalize(block)
		n.falsify(key(1))
		n.send(status(block, ledger.StatusFinalized))
		time.Sleep(2 * time.Minute)
		n.mustHaveFencedItselfOff(disk)
		if _, _, err := n.Account(ledger.Query{}, key(1)); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("an account that is wrong is answered with %v", err)
		}
		n.mustStop()
		n.config.Dir.Close()
		mustHold(t, disk, block.Slot) // the log is right
	})
}

// falsify changes an account behind the back of the log.
func (n *subject) falsify(k ledger.Pubkey) {
	n.t.Helper()
	synctest.Wait()
	wrong := lamports(k, 123456789)
	wrong.Pubkey = k
	base := &ledger.BaseState{Slot: 1 << 40, Accounts: []ledger.AccountWrite{wrong}}
	if _, err := n.shards[shard.Of(k.Prefix(), len(n.shards))].ApplyBase(n.seq.Chain().Tip.Version, base, false).Wait(); err != nil {
		n.t.Fatal(err)
	}
}

// mustHaveFencedItselfOff fails the test unless the node did so because of a snapshot, which is gone.
func (n *subject) mustHaveFencedItselfOff(disk *vfstest.Memory) {
	n.t.Helper()
	synctest.Wait()
	if why := n.Fenced(); !strings.Contains(why, "state hash") {
		n.t.Errorf("fenced: %q", why)
	}
	if s := n.Stats().Snapshot; s.Count > 0 || s.Failures == 0 {
		n.t.Errorf("%d snapshots were taken, %d failed", s.Count, s.Failures)
	}
	if files := filesOf(disk, ".state"); len(files) > 1 || n.config.Shared == nil && len(files) > 0 {
		n.t.Errorf("the snapshot is still there: %q", files)
	}
}

// forgeStateHash changes the state hash that a snapshot says it has. All checksums of the file are right.
func forgeStateHash(t *testing.T, disk *vfstest.Memory, name string) {
	t.Helper()
	const headerBytes, entryBytes, footerBytes = 16, 81, 44
	le := binary.LittleEndian
	b, err := disk.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	footer := len(b) - footerBytes
	index := footer - int(le.Uint32(b[footer:]))
	entry := b[footer-entryBytes : footer] // of the meta, the last chunk
	chunk := index - int(le.Uint32(entry[1:]))
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	defer decoder.Close()
	meta, err := decoder.DecodeAll(b[chunk:index], nil)
	if err != nil {
		t.Fatal(err)
	}
	digit := regexp.MustCompile(`"state_hash": \[\s*\d+`).FindIndex(meta)[1] - 1
	meta[digit] = '0' + (meta[digit]-'0'+1)%10
	stored := encoder.EncodeAll(meta, nil)
	le.PutUint32(entry[1:], uint32(len(stored)))
	le.PutUint32(entry[13:], crc32.Checksum(stored, crc32.MakeTable(crc32.Castagnoli)))
	hash := sha256.Sum256(slices.Concat(b[:headerBytes], b[index:footer+4]))
	forged := slices.Concat(b[:chunk], stored, b[index:footer+4], hash[:], b[len(b)-8:])
	if err := disk.WriteFile(name, forged); err != nil {
		t.Fatal(err)
	}
}
