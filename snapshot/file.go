package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"sort"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/codec"
	"ledgerd/snapshot/vfs"
)

// file is a whole file as far as its index tells. It is immutable.
type file struct {
	fs        vfs.FS
	dir, name string
	version   uint32 // of the format
	bytes     int64
	hash      FileHash
	end       int64    // of the chunks, where the index begins
	chunks    []chunk  // by kind, then key
	kept      vfs.File // what all readers read; nil: each opens the file for itself
}

// openFile reads header, index and footer of a file and checks all that they can tell. Errors
// match ErrDamaged or fs.ErrNotExist, are a *FormatError, or the disk's.
func openFile(fs vfs.FS, dir, name, magic string) (*file, error) {
	f, err := fs.Open(filepath.Join(dir, name))
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", name, err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("cannot read the size of %s: %w", name, err)
	}
	if size < headerBytes+footerBytes {
		return nil, &DamagedError{name, size, "the file ends early"}
	}
	header := make([]byte, headerBytes)
	if err := readAt(f, name, header, 0); err != nil {
		return nil, err
	}
	version, err := checkHeader(name, magic, header)
	if err != nil {
		return nil, err
	}
	index, hash, err := readIndex(f, name, size, header)
	if err != nil {
		return nil, err
	}
	opened := &file{fs: fs, dir: dir, name: name, version: version, bytes: size, hash: hash, end: size - footerBytes - int64(len(index))}
	return opened, opened.decodeIndex(index)
}

// readAt fills b from a place in a file. A file that ends too early is damaged, any other failure is the disk's.
func readAt(f vfs.File, name string, b []byte, offset int64) error {
	_, err := f.ReadAt(b, offset)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return &DamagedError{name, offset, "the file ends early"}
	}
	return fmt.Errorf("cannot read %s at byte %d: %w", name, offset, err)
}

// readIndex returns the bytes of the index after checking the footer.
func readIndex(f vfs.File, name string, size int64, header []byte) (index []byte, hash FileHash, err error) {
	footer := make([]byte, footerBytes)
	at := size - footerBytes
	if err := readAt(f, name, footer, at); err != nil {
		return nil, hash, err
	}
	if string(footer[4+len(hash):]) != endMagic {
		return nil, hash, &DamagedError{name, at, "the file does not end in a footer"}
	}
	length := int64(binary.LittleEndian.Uint32(footer))
	if length > at-headerBytes || length%int64(entryBytes) != 0 {
		return nil, hash, &DamagedError{name, at, fmt.Sprintf("the index says it has %d bytes", length)}
	}
	index = make([]byte, length)
	if err := readAt(f, name, index, at-length); err != nil {
		return nil, hash, err
	}
	expected, hash := appendFooter(nil, header, index)
	if !bytes.Equal(expected, footer) {
		return nil, hash, &DamagedError{name, at - length, "the hash of the index is wrong"}
	}
	return index, hash, nil
}

// decodeIndex fills in the chunks, which must fill the file up to the index, and whose key
// ranges must not overlap.
func (f *file) decodeIndex(index []byte) error {
	offset := int64(headerBytes)
	f.chunks = make([]chunk, 0, len(index)/entryBytes)
	for i := 0; i < len(index); i += entryBytes {
		c := decodeEntry(index[i:i+entryBytes], offset)
		if reason := c.check(); reason != "" {
			return &DamagedError{f.name, f.end + int64(i), reason}
		}
		f.chunks = append(f.chunks, c)
		offset += int64(c.stored)
	}
	if offset != f.end {
		return &DamagedError{f.name, f.end, fmt.Sprintf("the chunks end at byte %d", offset)}
	}
	slices.SortFunc(f.chunks, func(a, b chunk) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), a.first.Compare(&b.first))
	})
	for i := 1; i < len(f.chunks); i++ {
		before, c := &f.chunks[i-1], &f.chunks[i]
		if before.kind == c.kind && before.last.Compare(&c.first) >= 0 {
			return &DamagedError{f.name, c.offset, "the keys of two chunks overlap"}
		}
	}
	return nil
}

// of returns the chunks of a kind, in the order of their keys.
func (f *file) of(k kind) []chunk {
	from := sort.Search(len(f.chunks), func(i int) bool { return f.chunks[i].kind >= k })
	to := sort.Search(len(f.chunks), func(i int) bool { return f.chunks[i].kind > k })
	return f.chunks[from:to]
}

// count returns how many items of a kind there are.
func (f *file) count(k kind) (n uint64) {
	for _, c := range f.of(k) {
		n += uint64(c.count)
	}
	return n
}

// overBytes is how much room the decompressor needs after its output, to copy in whole words.
const overBytes = 16

// chunkReader reads and decompresses the chunks of a file, one after the other. It belongs to one goroutine.
type chunkReader struct {
	of          *file
	file        vfs.File
	account     codec.AccountDecoder
	zstd        *zstd.Decoder
	stored, raw []byte
	held        *chunk // of which raw are the bytes
}

// newChunkReader returns a reader that is to begin with a file. Its decompressor starts no goroutine, so it is not closed.
func newChunkReader() chunkReader {
	z, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(windowBytes), zstd.WithDecodeAllCapLimit(true)) // it fails only where an option is wrong
	return chunkReader{zstd: z}
}

// open returns a reader of the file's chunks, to be closed.
func (f *file) open() (*chunkReader, error) {
	r, opened := newChunkReader(), f.kept
	if opened == nil {
		var err error
		if opened, err = f.openDisk(); err != nil {
			return nil, err
		}
	}
	r.begin(f, opened)
	return &r, nil
}

// begin makes r a reader of a file, which is opened.
func (r *chunkReader) begin(f *file, opened vfs.File) {
	r.of, r.file, r.held = f, opened, nil
	r.account.WithoutData = f.version < 4
}

// openDisk opens the file on the disk.
func (f *file) openDisk() (vfs.File, error) {
	opened, err := f.fs.Open(filepath.Join(f.dir, f.name))
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", f.name, err)
	}
	return opened, nil
}

func (r *chunkReader) close() {
	if r.file != r.of.kept {
		r.file.Close() // nothing was written
	}
}

// read returns the raw bytes of a chunk, valid until another is read.
func (r *chunkReader) read(c *chunk) ([]byte, error) {
	if r.held == c {
		return r.raw, nil
	}
	r.held = nil
	passProcessor()
	r.stored = slices.Grow(r.stored[:0], int(c.stored))[:c.stored]
	if err := readAt(r.file, r.of.name, r.stored, c.offset); err != nil {
		return nil, err
	}
	if crc32.Checksum(r.stored, castagnoli) != c.checksum {
		return nil, r.of.damaged(c, "the checksum of a chunk is wrong")
	}
	room := int(c.raw) + overBytes
	r.raw = slices.Grow(r.raw[:0], room)
	// The capacity is the bound: a frame that holds more than the index says gets no more room.
	raw, err := r.zstd.DecodeAll(r.stored, r.raw[:0:room])
	if err != nil {
		return nil, r.of.damaged(c, fmt.Sprintf("a chunk cannot be decompressed: %v", err))
	}
	if len(raw) != int(c.raw) {
		return nil, r.of.damaged(c, fmt.Sprintf("a chunk holds %d bytes, not %d", len(raw), c.raw))
	}
	r.raw, r.held = r.raw[:len(raw)], c // its capacity stays
	return raw, nil
}

// hasMeta reports whether there is one meta.
func (f *file) hasMeta() bool {
	metas := f.of(metaChunk)
	return len(metas) == 1 && metas[0].count == 1
}

// readMeta calls decode with the meta of a file that has one, and returns its chunk.
func (f *file) readMeta(decode func(raw []byte) error) (*chunk, error) {
	meta := &f.of(metaChunk)[0]
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	defer r.close()
	raw, err := r.read(meta)
	if err != nil {
		return nil, err
	}
	if err := decode(raw); err != nil {
		return nil, f.damaged(meta, fmt.Sprintf("its meta cannot be read: %v", err))
	}
	return meta, nil
}

// damaged says that a chunk fails a check.
func (f *file) damaged(c *chunk, reason string) error { return &DamagedError{f.name, c.offset, reason} }
