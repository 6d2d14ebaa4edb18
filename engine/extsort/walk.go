package extsort

import (
	"cmp"
	"fmt"
	"slices"

	"ledgerd/engine/ledger"
)

// walk is one call of EachNewest, which goes from partition to partition.
type walk struct {
	sorter *Sorter
	visit  func(*Row) error
	rows   []byte // those of the partition that is being sorted
	order  []entry

	// newest is the newest row so far of the key that take got last; its value is a copy. The row is visited when
	// the next key comes.
	newest Row
	any    bool
}

// entry is where a row begins in rows, with the first bytes of its key.
type entry struct {
	prefix uint64
	at     uint32
}

// partition takes the rows of a partition, whose keys share their first depth bytes, and removes it.
func (w *walk) partition(p *partition, depth int) error {
	defer p.remove()
	if err := p.finish(); err != nil {
		return err
	}
	switch {
	case p.bytes == 0:
		return nil
	case p.bytes <= w.sorter.config.MemoryBytes:
		return w.sorted(p)
	case depth == len(ledger.Pubkey{}):
		return p.each(w.take)
	}
	parts := w.sorter.split(p.prefix)
	defer func() {
		for i := range parts {
			parts[i].remove()
		}
	}()
	if err := p.each(func(r *Row) error { return parts[r.Key[depth]].add(r) }); err != nil {
		return err
	}
	p.remove()
	for i := range parts {
		if err := w.partition(&parts[i], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// sorted takes the rows of a partition that fits into memory.
func (w *walk) sorted(p *partition) (err error) {
	if w.rows, err = p.load(w.rows); err != nil {
		return err
	}
	var r Row
	w.order = w.order[:0]
	for at := 0; at < len(w.rows); {
		n, err := decodeRow(w.rows[at:], &r)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", p.path, err)
		}
		w.order = append(w.order, entry{r.Key.Prefix(), uint32(at)})
		at += n
	}
	key := func(e entry) []byte { return w.rows[e.at : e.at+uint32(len(r.Key))] }
	slices.SortFunc(w.order, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return cmp.Or(slices.Compare(key(a), key(b)), cmp.Compare(a.at, b.at))
	})
	for _, e := range w.order {
		decodeRow(w.rows[e.at:], &r) // did not fail above
		if err := w.take(&r); err != nil {
			return err
		}
	}
	return nil
}

// take takes the next row. Keys come in their order, and the rows of a key in the order they were added.
func (w *walk) take(r *Row) error {
	if w.any && r.Key == w.newest.Key && r.olderThan(&w.newest) {
		return nil
	}
	if w.any && r.Key != w.newest.Key {
		if err := w.flush(); err != nil {
			return err
		}
	}
	value := append(w.newest.Value[:0], r.Value...)
	w.newest, w.any = *r, true
	w.newest.Value = value
	return nil
}

// flush visits the newest row of the last key.
func (w *walk) flush() error {
	if !w.any {
		return nil
	}
	return w.visit(&w.newest)
}
