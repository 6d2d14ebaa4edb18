package gather

import (
	"bufio"
	"fmt"
	"io"

	"ledgerd/snapshot/vfs"
)

// bufferBytes is how much of a pile is written at once.
const bufferBytes = 64 << 10

// pile is a file of rows in the order they were added.
type pile struct {
	disk   vfs.FS
	name   string
	file   vfs.File // nil until the first row is written
	buffer []byte
	bytes  int64 // written
}

// add appends a row.
func (p *pile) add(r *Row) error {
	if len(p.buffer)+maxRowBytes > bufferBytes {
		if err := p.flush(); err != nil {
			return err
		}
	}
	if p.buffer == nil {
		p.buffer = make([]byte, 0, bufferBytes)
	}
	p.buffer = appendRow(p.buffer, r)
	return nil
}

func (p *pile) flush() (err error) {
	if len(p.buffer) == 0 {
		return nil
	}
	if p.file == nil {
		if p.file, err = p.disk.Create(p.name); err != nil {
			return fmt.Errorf("cannot make %s: %w", p.name, err)
		}
	}
	if _, err := p.file.WriteAt(p.buffer, p.bytes); err != nil {
		return fmt.Errorf("cannot write %s: %w", p.name, err)
	}
	p.bytes += int64(len(p.buffer))
	p.buffer = p.buffer[:0]
	return nil
}

// finish writes what is left; nothing is added after it.
func (p *pile) finish() error {
	err := p.flush()
	p.buffer = nil
	return err
}

// load returns all bytes of the pile, in the room given if that is enough.
func (p *pile) load(room []byte) ([]byte, error) {
	if int64(cap(room)) < p.bytes {
		room = make([]byte, p.bytes)
	}
	room = room[:p.bytes]
	if p.bytes == 0 {
		return room, nil
	}
	if n, err := p.file.ReadAt(room, 0); n < len(room) {
		return nil, fmt.Errorf("cannot read %s: %w", p.name, err)
	}
	return room, nil
}

// each calls visit for every row in the order they were added. A row is good until visit returns.
func (p *pile) each(visit func(*Row) error) error {
	if p.bytes == 0 {
		return nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(p.file, 0, p.bytes), max(bufferBytes, maxRowBytes))
	for {
		b, err := in.Peek(maxRowBytes)
		if len(b) == 0 && err == io.EOF {
			return nil
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("cannot read %s: %w", p.name, err)
		}
		var r Row
		n, err := decodeRow(b, &r)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", p.name, err)
		}
		if err := visit(&r); err != nil {
			return err
		}
		in.Discard(n) // it was looked at: it is there
	}
}

// remove gives up the pile and its space. What is left behind is removed with the directory.
func (p *pile) remove() {
	if p.file != nil {
		p.file.Close()
		_ = p.disk.Remove(p.name)
		p.file = nil
	}
	p.buffer, p.bytes = nil, 0
}
