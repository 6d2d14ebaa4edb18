package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
	"ledgerd/snapshot/vfs/vfstest"
)

// withSnapshots returns a disk with two snapshots and log behind them, and the head of the node
// that left it.
func withSnapshots(t *testing.T) (*vfstest.Memory, *ledger.Head) {
	t.Helper()
	s, _ := scripted()
	disk := vfstest.NewMemory()
	_, err := followScript(t, s, disk)
	must(t, err)
	head, err := heldBy(t, disk)
	must(t, err)
	ledgertest.Equal(t, len(filesOf(disk, ".state")), 2, "snapshots")
	return disk, head
}

// filesOf returns the files with a suffix, oldest first.
func filesOf(disk *vfstest.Memory, suffix string) []string {
	return slices.DeleteFunc(disk.Paths(), func(name string) bool { return !strings.HasSuffix(name, suffix) })
}

// damage turns over one byte in the middle of a file.
func damage(t *testing.T, disk *vfstest.Memory, name string) {
	t.Helper()
	content, err := disk.ReadFile(name)
	must(t, err)
	at := len(content) / 2
	must(t, disk.Overwrite(name, int64(at), []byte{content[at] ^ 0x10}))
}

// The kinds of chunks in a snapshot that tests forge.
const accountChunk, metaChunk = 1, 4

// forge changes the raw bytes of one chunk of a kind in a snapshot: of the last for which change returns true. Their length must stay. All
// checksums of the file are right.
func forge(t *testing.T, disk *vfstest.Memory, name string, kind byte, change func(raw []byte) bool) {
	t.Helper()
	const headerBytes, entryBytes, footerBytes = 16, 81, 44
	le := binary.LittleEndian
	b, err := disk.ReadFile(name)
	must(t, err)
	footer := len(b) - footerBytes
	index := footer - int(le.Uint32(b[footer:]))
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	defer decoder.Close()
	end := index // of the chunk of entry
	for entry := footer - entryBytes; entry >= index; entry -= entryBytes {
		chunk := end - int(le.Uint32(b[entry+1:]))
		raw, err := decoder.DecodeAll(b[chunk:end], nil)
		must(t, err)
		if b[entry] != kind || !change(raw) {
			end = chunk
			continue
		}
		stored := encoder.EncodeAll(raw, nil)
		le.PutUint32(b[entry+1:], uint32(len(stored)))
		le.PutUint32(b[entry+13:], crc32.Checksum(stored, crc32.MakeTable(crc32.Castagnoli)))
		hash := sha256.Sum256(slices.Concat(b[:headerBytes], b[index:footer+4]))
		must(t, disk.WriteFile(name, slices.Concat(b[:chunk], stored, b[end:footer+4], hash[:], b[len(b)-8:])))
		return
	}
	t.Fatalf("%s has no such chunk", name)
}

// forgeStateHash changes the state hash that a snapshot says it has.
func forgeStateHash(t *testing.T, disk *vfstest.Memory, name string) {
	t.Helper()
	forge(t, disk, name, metaChunk, func(meta []byte) bool {
		digit := regexp.MustCompile(`"state_hash": \[\s*\d+`).FindIndex(meta)[1] - 1
		meta[digit] = '0' + (meta[digit]-'0'+1)%10
		return true
	})
}

// forgeAccount changes the lamports of one account, so that only the state hash tells.
func forgeAccount(t *testing.T, disk *vfstest.Memory, name string, key ledger.Pubkey) {
	t.Helper()
	forge(t, disk, name, accountChunk, func(accounts []byte) bool {
		at := bytes.Index(accounts, key[:])
		if at >= 0 {
			accounts[at+len(key)] ^= 1
		}
		return at >= 0
	})
}

// F4, F6, F7, F8, G24: TestDamagedSnapshotIsPassedOver damages, cuts or takes away snapshots, their history and the log: the node answers the same
// from the snapshot before, or without the blocks of the history file that is lost, the log is as it was, and the node goes on. Where nothing
// leads to the newest block it says so and starts nothing.
func TestDamagedSnapshotIsPassedOver(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		disk, want := withSnapshots(t)
		states, history, segments := filesOf(disk, ".state"), filesOf(disk, ".blocks"), filesOf(disk, ".wal")
		sealed, last := segments[:len(segments)-1], segments[len(segments)-1] // the last may be replaced where nothing is in it
		const header = 80
		if content, err := disk.ReadFile(last); err == nil && len(content) == header {
			last = segments[len(segments)-2] // the last that holds records
		}
		for name, tt := range map[string]struct {
			harm   func(*vfstest.Memory)
			passed uint64   // snapshots that are passed over
			lost   int      // history files that are
			refuse []string // words of the refusal; nil: it starts
		}{
			"untouched":              {func(d *vfstest.Memory) {}, 0, 0, nil},
			"the newest":             {func(d *vfstest.Memory) { damage(t, d, states[1]) }, 1, 0, nil},
			"the newest, to nothing": {func(d *vfstest.Memory) { d.WriteFile(states[1], nil) }, 1, 0, nil},
			"the newest is gone":     {func(d *vfstest.Memory) { d.Remove(states[1]) }, 0, 0, nil},
			"the newest, forged":     {func(d *vfstest.Memory) { forgeStateHash(t, d, states[1]) }, 1, 0, nil},
			"its history":            {func(d *vfstest.Memory) { damage(t, d, history[len(history)-1]) }, 1, 0, nil},
			"its history is gone":    {func(d *vfstest.Memory) { d.Remove(history[len(history)-1]) }, 1, 0, nil},
			"history of both":        {func(d *vfstest.Memory) { damage(t, d, history[0]) }, 0, 1, nil},
			"history of both, gone":  {func(d *vfstest.Memory) { d.Remove(history[0]) }, 0, 1, nil},
			"both":                   {func(d *vfstest.Memory) { damage(t, d, states[0]); damage(t, d, states[1]) }, 0, 0, []string{"no snapshot is whole"}},
			"both are gone":          {func(d *vfstest.Memory) { d.Remove(states[0]); d.Remove(states[1]) }, 0, 0, []string{"record 1"}},
			"the log":                {func(d *vfstest.Memory) { damage(t, d, last) }, 0, 0, []string{filepath.Base(last), "slot", ".state"}},
			"the node file is gone":  {func(d *vfstest.Memory) { d.Remove("data/node.json") }, 0, 0, []string{"node.json is missing"}},
		} {
			harmed := disk.Clone()
			tt.harm(harmed)
			before := filesIn(harmed, datadir.LogDir("data"))
			n, err := opened(t, harmed)
			after := filesIn(harmed, datadir.LogDir("data"))
			for _, path := range sealed {
				file := filepath.Base(path)
				ledgertest.Equal(t, after[file], before[file], "%s: what %s holds", name, file)
			}
			for _, words := range tt.refuse {
				ledgertest.ErrorSays(t, err, words, "%s: the start", name)
			}
			if tt.refuse != nil {
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := n.Head()
			if got.StateHash != want.StateHash || got.Tips != want.Tips || got.Floor != want.Floor {
				t.Errorf("%s: stands at %+v, want %+v", name, got, want)
			}
			ledgertest.Equal(t, n.Stats().Snapshot.Damaged, tt.passed, "%s: snapshots that were passed over", name)
			ledgertest.Equal(t, n.Stats().LostHistory, tt.lost, "%s: history files that are lost", name)
			// It goes on, and takes snapshots that are whole.
			s, m := scripted()
			_, err = followScript(t, s, harmed)
			must(t, err)
			if got, err = heldBy(t, harmed); err != nil || rightHead(m, got, m.version()) != nil {
				t.Errorf("%s: at the end %+v, %v", name, got, err)
			}
		}
	})
}

// F8: TestDamagedHistoryFileCostsItsOwnBlocks damages, cuts or takes away one or some history files that all snapshots share. The blocks of all others
// are answered as before, those of the damaged ones are said to be not indexed, nothing is deleted, health, figures and log tell, and
// all of that is so after further snapshots and starts, until the retention has passed the files.
func TestDamagedHistoryFileCostsItsOwnBlocks(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		var log bytes.Buffer // of the newest start
		start := func(disk *vfstest.Memory) *subject {
			log.Reset()
			n := startNode(t, live(), onDisk(t, disk, Config{
				Shards: 2, Retention: sequencer.Retention{Slots: 100, Bytes: 1 << 40}, SnapshotInterval: time.Second,
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			}))
			synctest.Wait()
			return n
		}
		// grow shows blocks, some slots skipped, each with a signature of its slot, makes them final, and has a snapshot taken.
		grow := func(n *subject, on *ledger.Block, snapshots int) *ledger.Block {
			for range snapshots {
				for i := range ledger.Slot(4) {
					on = with(child(on, on.Slot+1+i%2, 0, lamports(key(1), ledger.Lamports(on.Slot))), signature(int(on.Slot+1+i%2)))
					n.send(on, status(on, ledger.StatusFinalized))
				}
				pause(2 * time.Second)
			}
			return on
		}
		disk := vfstest.NewMemory()
		n, root := start(disk), with(rootBlock(100, lamports(key(1), 100)), signature(100))
		n.send(root)
		tip := grow(n, root, 6)
		whole := map[ledger.Slot]int{} // why there is no block at a slot, -1 where there is one
		for slot := root.Slot; slot <= tip.Slot; slot++ {
			whole[slot] = whyAbsent(n, slot)
		}
		n.close()
		files := filesOf(disk, ".blocks")
		if len(files) < 5 {
			t.Fatalf("history files: %v", files)
		}
		slots := func(file string) (first, last ledger.Slot) {
			_, err := fmt.Sscanf(filepath.Base(file), "history-%d-%d", &first, &last)
			must(t, err)
			return first, last
		}
		suffers := func(what string, hurt []int, harm func(*vfstest.Memory, string)) {
			harmed, want := disk.Clone(), maps.Clone(whole)
			for _, i := range hurt {
				first, last := slots(files[i])
				for slot := first; slot <= last; slot++ {
					want[slot] = int(ledger.SlotNotIndexed)
				}
				harm(harmed, files[i])
			}
			present, block := filesOf(harmed, ".blocks"), tip
			for life := range 3 {
				n := start(harmed)
				for slot := n.Head().Floor; slot <= tip.Slot; slot++ {
					_, _, err := n.Transaction(ledger.Query{}, signature(int(slot)))
					why := whyAbsent(n, slot)
					ledgertest.Equal(t, err == nil, why < 0, "%s, start %d: whether there is a transaction at slot %d", what, life, slot)
					if lost := why == int(ledger.SlotNotIndexed); why != want[slot] && !(lost && whole[slot] == int(ledger.SlotSkipped)) { // the proof that it was skipped may be lost
						t.Errorf("%s, start %d: slot %d is absent for %d, want %d", what, life, slot, why, want[slot])
					}
				}
				ledgertest.Equal(t, n.Stats().LostHistory, len(hurt), "%s, start %d: lost files", what, life)
				_, from := slots(files[slices.Max(hurt)])
				for from++; whole[from] >= 0; from++ {
				}
				ledgertest.Equal(t, n.Stats().HistoryFrom, from, "%s, start %d: the slot from which on no block is lost", what, life)
				for _, i := range hurt {
					name := filepath.Base(files[i])
					ledgertest.Contains(t, n.Status().Degraded, name, "%s, start %d: what health says", what, life)
					ledgertest.Contains(t, log.String(), name, "%s, start %d: the log", what, life)
				}
				n.mustSay("starting") // and nothing else
				ledgertest.Equal(t, n.Stats().Snapshot.Damaged, 0, "%s: snapshots passed over", what)
				block = grow(n, block, 3)
				ledgertest.Equal(t, n.Stats().Snapshot.Failures, 0, "%s: snapshots that failed", what)
				for _, file := range present {
					if _, last := slots(file); last >= n.Head().Floor && !slices.Contains(filesOf(harmed, ".blocks"), file) {
						t.Errorf("%s, start %d: %s was deleted", what, life, file)
					}
				}
				n.close()
			}
			n := start(harmed)
			grow(n, block, 12)
			if left := filesOf(harmed, ".blocks"); n.Stats().LostHistory != 0 || n.Status().Degraded != "" || slices.ContainsFunc(left, func(f string) bool { return slices.Contains(files[:4], f) }) {
				t.Errorf("%s: after the retention has passed, %d are lost, %q, and there are %v", what, n.Stats().LostHistory, n.Status().Degraded, left)
			}
			n.close()
		}
		for _, hurt := range [][]int{{0, 2, 3}, {0}} { // a hole and two that are neighbours, and the oldest alone
			suffers("a flipped bit", hurt, func(d *vfstest.Memory, file string) { damage(t, d, file) })
			suffers("cut", hurt, func(d *vfstest.Memory, file string) { must(t, d.WriteFile(file, nil)) })
			suffers("gone", hurt, func(d *vfstest.Memory, file string) { must(t, d.Remove(file)) })
		}
	})
}

// F8, F54: TestSnapshotOfAnotherStateIsFoundOut changes an account in the newest of two snapshots, whose checksums and state hash are as
// they should be. The node does not wait for the sum of all accounts before it answers, and fences itself off once it has that. If
// the replay comes upon the account, the start is refused. An export waits for the sum, and goes on from the snapshot before.
func TestSnapshotOfAnotherStateIsFoundOut(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n := startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
		root := rootBlock(100, lamports(key(1), 100), lamports(key(2), 100))
		n.send(root)
		block := n.finalize(n.finalize(root))
		n.close()
		n = startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
		block = n.finalize(block)
		n.close()
		states := filesOf(disk, ".state")
		ledgertest.Equal(t, len(states), 2, "snapshots")
		newest := states[1]
		exportOf := func(disk *vfstest.Memory) (events []ledger.Event) {
			must(t, exportTo(t, t.Context(), disk, func(e ledger.Event) error { events = append(events, e); return nil }))
			return events
		}
		without := disk.Clone()
		must(t, without.Remove(newest))
		want := exportOf(without)

		changed := disk.Clone()
		forgeAccount(t, changed, newest, key(1)) // the next block writes it, too
		_, err := opened(t, changed)
		ledgertest.ErrorSays(t, err, filepath.Base(newest)+" is damaged", "the start, where the replay comes upon the account")

		forgeAccount(t, disk, newest, key(2))
		if got := exportOf(disk); !reflect.DeepEqual(got, want) {
			t.Errorf("the export has %d events, want the %d of the snapshot before", len(got), len(want))
		}
		n = startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
		synctest.Wait()
		ledgertest.Equal(t, n.Stats().Snapshot.Damaged, 0, "snapshots that were passed over")
		ledgertest.Equal(t, n.seq.Head().Tip(ledger.Processed).Slot, block.Slot, "the slot that the replay led to")
		n.mustSay("fenced itself off", filepath.Base(newest), "another state hash")
		_, _, err = n.Account(ledger.Query{}, key(1))
		ledgertest.ErrorIs(t, err, ledger.ErrUnavailable, "an account of a node that fenced itself off")
		ledgertest.Equal(t, n.source.ended, true, "the source ended")
		n.close()
		ledgertest.Equal(t, filesOf(disk, ".state")[1], newest, "the newest snapshot after the end")
	})
}

// F5: TestLedgerThatIsGoneIsNoFreshStart takes away the log and the snapshots of a node, or puts those of
// another ledger in their place: the start is refused, whatever kind the source is.
func TestLedgerThatIsGoneIsNoFreshStart(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		logDir := datadir.LogDir("data")
		left := func(root *ledger.Block) *vfstest.Memory {
			disk := vfstest.NewMemory()
			n := startNode(t, live(), onDisk(t, disk, Config{Shards: 1}))
			ledgertest.Equal(t, n.Status().NodeID, n.config.Dir.NodeID(), "the node id, which is that of the directory,")
			n.send(root)
			return disk.Crash(0, 1) // with no snapshot yet
		}
		for words, files := range map[string]map[string]string{
			"are gone":       nil,
			"another ledger": filesIn(left(rootBlock(101)), logDir),
		} {
			disk := left(rootBlock(100))
			for name := range filesIn(disk, logDir) {
				disk.Remove(filepath.Join(logDir, name))
			}
			for name, content := range files {
				must(t, disk.WriteFile(filepath.Join(logDir, name), []byte(content)))
			}
			for _, info := range []ledger.SourceInfo{live(), finite()} {
				n := startNode(t, info, onDisk(t, disk, Config{Shards: 1}))
				synctest.Wait()
				ledgertest.ErrorSays(t, n.stop(), words, "live %v", info.Live)
				n.config.Dir.Close()
			}
		}
	})
}
