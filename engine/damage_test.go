package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs/vfstest"
)

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
			nameless := disk.Clone()
			must(t, nameless.Remove("data/node.json"))
			_, err := tryOnDisk(nameless, Config{})
			ledgertest.ErrorSays(t, err, "node.json is missing", "without it")
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
