package extsort

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

const (
	// bufferBytes is how much of a spool is written and read at once.
	bufferBytes = 64 << 10
	// rowBytes is the memory that a row takes besides its value while eachNewest sorts.
	rowBytes = 256
)

// Spool is a file of rows in the order in which they were added. It is in the directory of a Sorter, which removes it.
type Spool struct {
	sorter *Sorter
	path   string
	file   vfs.File      // nil before the first row
	out    *bufio.Writer // likewise
	rows   int
	bytes  int64 // the memory that eachNewest takes at most
}

// Add appends a copy of a row. After an error nothing more may be added.
func (p *Spool) Add(r *Row) error {
	if len(r.Value) > math.MaxUint32 {
		return fmt.Errorf("the value of a row takes %d bytes", len(r.Value))
	}
	if p.file == nil {
		if err := p.sorter.create(p); err != nil {
			return err
		}
		p.out = bufio.NewWriterSize(io.NewOffsetWriter(p.file, 0), bufferBytes)
	}
	if _, err := p.out.Write(appendRow(p.out.AvailableBuffer(), r)); err != nil {
		return fmt.Errorf("cannot write %s: %w", p.path, err)
	}
	p.rows++
	p.bytes += rowBytes + int64(len(r.Value))
	return nil
}

// Each calls visit for every row in the order in which they were added, until visit returns an error, and returns that.
// A row is valid until visit returns.
func (p *Spool) Each(visit func(*Row) error) error {
	if p.file == nil {
		return nil
	}
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("cannot write %s: %w", p.path, err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(p.file, 0, math.MaxInt64), bufferBytes)
	var r Row
	for range p.rows {
		if err := r.read(in); err != nil {
			return fmt.Errorf("cannot read %s: %w", p.path, err)
		}
		if err := visit(&r); err != nil {
			return err
		}
	}
	return nil
}

// eachNewest is Sorter.EachNewest for the rows of one spool. It sorts in memory.
func (p *Spool) eachNewest(visit func(*Row) error) error {
	rows := make(map[ledger.Pubkey]Row, p.rows)
	err := p.Each(func(r *Row) error {
		newest, ok := rows[r.Key]
		if ok && cmp.Or(cmp.Compare(r.Slot, newest.Slot), cmp.Compare(r.Version, newest.Version)) < 0 {
			return nil
		}
		value := append(newest.Value[:0], r.Value...)
		newest = *r
		newest.Value = value
		rows[r.Key] = newest
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range slices.SortedFunc(maps.Keys(rows), func(a, b ledger.Pubkey) int { return a.Compare(&b) }) {
		r := rows[k]
		if err := visit(&r); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the file. If that fails, Sorter.Close removes it.
func (p *Spool) remove() {
	if p.file != nil {
		_ = p.file.Close()
		_ = p.sorter.disk.Remove(p.path)
		p.file, p.out = nil, nil
	}
}
