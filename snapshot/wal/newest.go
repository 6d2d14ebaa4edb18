package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"

	"ledgerd/snapshot/vfs"
)

// newest is the content of the file of that name:
//
//	 0  magic      8    "ledgerWN"
//	 8  format     u32  1
//	12  index      u64  of the newest segment that may hold a record
//	20  durable    u64  a position known durable: that segment's own, or a later one in it
//	28  crc        u32  CRC32C of bytes 0 to 28
//
// All numbers are little endian.
type newest struct {
	index   uint64
	durable Position
}

func (n newest) encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(newestMagic), formatVersion)
	b = le.AppendUint64(le.AppendUint64(b, n.index), uint64(n.durable))
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readNewest reads the file newest. It returns fs.ErrNotExist if there is none.
func readNewest(disk vfs.FS, dir string) (newest, error) {
	name := filepath.Join(dir, newestName)
	f, err := disk.Open(name)
	if err != nil {
		return newest{}, err
	}
	defer f.Close()
	b := make([]byte, newestBytes)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return newest{}, fmt.Errorf("cannot read %s: %w", name, err)
	}
	err = checkFile(name, b[:n], newestMagic, newestBytes)
	var format *vfs.FormatError
	if errors.As(err, &format) {
		return newest{}, err
	}
	if err != nil {
		return newest{}, &CorruptError{Segment: name, Reason: reasonOf(err)}
	}
	le := binary.LittleEndian
	return newest{index: le.Uint64(b[12:]), durable: Position(le.Uint64(b[20:]))}, nil
}

// announce replaces the file newest.
func announce(c *Config, n newest) error {
	f, err := replaceFile(c, filepath.Join(c.Dir, newestName), func(f vfs.File) error {
		return writeAt(f, n.encode(), 0)
	})
	if err != nil {
		return err
	}
	_ = f.Close() // it is synced
	return nil
}

// saveLater starts the timer saver unless it runs. When it fires, newest is replaced, or later if a replacement is under way.
func (l *Log) saveLater() {
	if !l.saving.Swap(true) {
		l.saver.Reset(saveEvery)
	}
}

// saveDurable replaces newest, which then names the end of what is durable: a log that ends before that has lost records. The
// timer saver calls it. It does not lock mu, so no commit waits for it. Any error but ErrNoSpace fails the log.
func (l *Log) saveDurable() {
	l.announcing <- struct{}{}
	defer func() { <-l.announcing }()
	if l.closed.Load() || l.Err() != nil {
		return
	}
	content := l.durableAt.Load()
	err := announce(&l.c, *content)
	if err != nil && !errors.Is(err, ErrNoSpace) {
		_ = l.fail(err)
		return
	}
	l.saving.Store(false)
	if err != nil || l.durableAt.Load() != content {
		l.saveLater()
	}
}
