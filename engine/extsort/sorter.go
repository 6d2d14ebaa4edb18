package extsort

import (
	"cmp"
	"fmt"
	"path/filepath"
	"sync"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// defaultMemoryBytes holds a partition of some 200,000 accounts.
const defaultMemoryBytes = 64 << 20

// Partitions is the number of partitions. A range of first bytes is within 0 to Partitions-1.
const Partitions = 256

// Sorter holds rows on disk until EachNewest visits them.
type Sorter struct {
	disk        vfs.FS
	dir         string
	memoryBytes int64
	partitions  []*Spool

	mu     sync.Mutex
	spools []*Spool // all that have a file, or had one
}

// New returns an empty Sorter that keeps its files in a directory, which it makes, or empties. memoryBytes bounds the
// memory for the rows of one call of EachNewest; 0: 64 MiB.
func New(disk vfs.FS, dir string, memoryBytes int64) (*Sorter, error) {
	if err := vfs.Clear(disk, dir); err != nil {
		return nil, err
	}
	if err := disk.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("cannot make %s: %w", dir, err)
	}
	s := &Sorter{disk: disk, dir: dir, memoryBytes: cmp.Or(memoryBytes, defaultMemoryBytes)}
	s.partitions = s.split()
	return s, nil
}

// split returns empty partitions, one for each value of a byte.
func (s *Sorter) split() []*Spool {
	partitions := make([]*Spool, Partitions)
	for i := range partitions {
		partitions[i] = s.NewSpool()
	}
	return partitions
}

// Add adds a copy of a row. After an error nothing more may be added.
func (s *Sorter) Add(r *Row) error { return s.partitions[r.Key[0]].Add(r) }

// NewSpool returns an empty Spool in the directory. Any goroutine may call it.
func (s *Sorter) NewSpool() *Spool { return &Spool{sorter: s} }

// create makes the file of a spool.
func (s *Sorter) create(p *Spool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spools = append(s.spools, p)
	p.path = filepath.Join(s.dir, fmt.Sprintf("rows-%d", len(s.spools)))
	if p.file, err = s.disk.Create(p.path); err != nil {
		return fmt.Errorf("cannot make %s: %w", p.path, err)
	}
	return nil
}

// EachNewest calls visit for the newest row of each key whose first byte is in the range from first to last,
// in the order of keys, until visit returns an error, and returns that. A row is valid until visit returns. It removes
// the rows of the range as it goes.
func (s *Sorter) EachNewest(first, last int, visit func(*Row) error) error {
	return s.eachNewest(s.partitions[first:last+1], 1, visit)
}

// eachNewest is EachNewest for partitions by the byte before depth.
func (s *Sorter) eachNewest(partitions []*Spool, depth int, visit func(*Row) error) (err error) {
	for _, p := range partitions {
		if p.bytes <= s.memoryBytes || depth == len(ledger.Pubkey{}) { // in the latter case it has one key
			err = p.eachNewest(visit)
		} else {
			smaller := s.split()
			if err = p.Each(func(r *Row) error { return smaller[r.Key[depth]].Add(r) }); err == nil {
				p.remove() // frees its space on disk
				err = s.eachNewest(smaller, depth+1, visit)
			}
		}
		if err != nil {
			return err
		}
		p.remove()
	}
	return nil
}

// Close removes the files. All other calls must have returned.
func (s *Sorter) Close() error {
	for _, p := range s.spools {
		p.remove()
	}
	return vfs.Clear(s.disk, s.dir)
}
