package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger"
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
