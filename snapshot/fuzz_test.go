package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"path"
	"runtime"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"

	"ledgerd/engine/ledger/ledgertest"
)

// FuzzOpen opens files that anybody could have written. Their sums are made right first, or
// nothing would ever get past them. Whatever they hold, it is refused as damage or it is a
// snapshot that says of itself what it holds; no input makes readers take much more
// memory than the bounds of a chunk allow.
func FuzzOpen(f *testing.F) {
	disk, _, w := smallSnapshot(f)
	f.Add(content(f, disk, w.Name), content(f, disk, w.Meta.History[0].Name))
	f.Add([]byte{}, []byte(historyMagic))
	f.Fuzz(func(t *testing.T, state, history []byte) {
		disk := vfstest.NewMemory()
		for name, b := range map[string][]byte{w.Name: reseal(state), w.Meta.History[0].Name: reseal(history)} {
			must(t, disk.WriteFile(path.Join(testDir, name), b))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		errs := readAll(disk, w)
		runtime.ReadMemStats(&after)
		for _, err := range errs {
			var version *FormatError
			ledgertest.Holds(t, err == nil || errors.Is(err, ErrDamaged) || errors.As(err, &version), "err = %v, want damage", err)
		}
		// Two copies of the longest chunk, and what its blocks decode to.
		if took := after.TotalAlloc - before.TotalAlloc; took > 8*codec.MaxEventBytes+64*uint64(len(state)+len(history)) {
			t.Errorf("%d and %d bytes made readers take %d", len(state), len(history), took)
		}
	})
}

// readAll reads a snapshot and its history file, each by itself and then together: one that is
// refused must not hide the other.
func readAll(disk vfs.FS, w Written) []error {
	read := func(name, magic string) error {
		f, err := openFile(disk, testDir, name, magic)
		if err == nil {
			_, err = f.checkItems(context.Background(), Pace{})
		}
		return err
	}
	return []error{read(w.Name, snapshotMagic), read(w.Meta.History[0].Name, historyMagic), serves(disk, w.Info)}
}

// reseal makes the sums of a file right again, as far as its lengths let one find them.
func reseal(b []byte) []byte {
	if len(b) < headerBytes+footerBytes {
		return b
	}
	b = append([]byte(nil), b...)
	copy(b, resealHeader(append([]byte(nil), b[:headerBytes]...)))
	footer := len(b) - footerBytes
	length := uint64(binary.LittleEndian.Uint32(b[footer:]))
	if length > uint64(footer-headerBytes) {
		return b
	}
	index := b[footer-int(length) : footer]
	offset := uint64(headerBytes)
	for e := 0; e+entryBytes <= len(index); e += entryBytes {
		stored := uint64(binary.LittleEndian.Uint32(index[e+1:]))
		if end := offset + stored; end <= uint64(footer)-length && end < math.MaxInt32 {
			binary.LittleEndian.PutUint32(index[e+13:], crc32.Checksum(b[offset:end], castagnoli))
		}
		offset += stored
	}
	end, _ := appendFooter(nil, b[:headerBytes], index)
	copy(b[footer:], end)
	return b
}
