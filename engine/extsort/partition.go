package extsort

import (
	"bufio"
	"fmt"
	"io"

	"ledgerd/snapshot/vfs"
)

// bufferBytes is how much of a partition is written at once.
const bufferBytes = 64 << 10

// partition is a file of rows in the order they were added.
type partition struct {
	disk   vfs.FS
	prefix string // the first bytes of its keys, in hexadecimal
	path   string
	file   vfs.File      // nil until the first row is added
	out    *bufio.Writer // likewise, and nil once all rows are written
	bytes  int64         // of all rows
}

// add appends a row.
func (p *partition) add(r *Row) (err error) {
	if p.file == nil {
		if p.file, err = p.disk.Create(p.path); err != nil {
			return fmt.Errorf("cannot make %s: %w", p.path, err)
		}
		p.out = bufio.NewWriterSize(io.NewOffsetWriter(p.file, 0), bufferBytes)
	}
	n, err := p.out.Write(appendRow(p.out.AvailableBuffer(), r))
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", p.path, err)
	}
	p.bytes += int64(n)
	return nil
}

// finish writes what is buffered and frees the buffer. Nothing may be added after it.
func (p *partition) finish() error {
	if p.out == nil {
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("cannot write %s: %w", p.path, err)
	}
	p.out = nil
	return nil
}

// load returns the bytes of all rows, in buf if its capacity is enough.
func (p *partition) load(buf []byte) ([]byte, error) {
	if int64(cap(buf)) < p.bytes {
		buf = make([]byte, p.bytes)
	}
	buf = buf[:p.bytes]
	if n, err := p.file.ReadAt(buf, 0); n < len(buf) {
		return nil, fmt.Errorf("cannot read %s: %w", p.path, err)
	}
	return buf, nil
}

// each calls visit for every row in the order they were added. A row is valid until visit returns.
func (p *partition) each(visit func(*Row) error) error {
	in := bufio.NewReaderSize(io.NewSectionReader(p.file, 0, p.bytes), bufferBytes)
	for {
		b, err := in.Peek(maxRowBytes)
		if len(b) == 0 && err == io.EOF {
			return nil
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("cannot read %s: %w", p.path, err)
		}
		var r Row
		n, err := decodeRow(b, &r)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", p.path, err)
		}
		if err := visit(&r); err != nil {
			return err
		}
		in.Discard(n) // cannot fail: these bytes were peeked
	}
}

// remove removes the file. One that cannot be removed goes when the directory is cleared.
func (p *partition) remove() {
	if p.file != nil {
		p.file.Close()
		_ = p.disk.Remove(p.path)
	}
	p.file, p.out, p.bytes = nil, nil, 0
}
