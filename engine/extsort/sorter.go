package extsort

import (
	"fmt"
	"math"
	"path/filepath"

	"ledgerd/snapshot/vfs"
)

// defaultMemoryBytes holds a partition of half a million accounts.
const defaultMemoryBytes = 64 << 20

// Partitions is how many there are: ranges of first bytes lie within 0 to Partitions-1.
const Partitions = 256

// Config says where a Sorter keeps its files.
type Config struct {
	FS  vfs.FS
	Dir string // is made, and emptied
	// MemoryBytes bounds the rows that one caller of EachNewest holds, to 4 GiB at most; 0: 64 MiB.
	MemoryBytes int64
}

// Sorter holds rows on disk until EachNewest reads them.
type Sorter struct {
	config     Config
	partitions []partition
}

// New returns an empty Sorter.
func New(c Config) (*Sorter, error) {
	if c.MemoryBytes == 0 {
		c.MemoryBytes = defaultMemoryBytes
	}
	c.MemoryBytes = min(c.MemoryBytes, math.MaxUint32) // entry.at is 32 bits wide
	if err := vfs.Clear(c.FS, c.Dir); err != nil {
		return nil, err
	}
	if err := c.FS.MkdirAll(c.Dir); err != nil {
		return nil, fmt.Errorf("cannot make %s: %w", c.Dir, err)
	}
	s := &Sorter{config: c}
	s.partitions = s.split("")
	return s, nil
}

// split returns empty partitions, one for each next byte of keys that begin with prefix, in hexadecimal.
func (s *Sorter) split(prefix string) []partition {
	partitions := make([]partition, Partitions)
	for i := range partitions {
		p := fmt.Sprintf("%s%02x", prefix, i)
		partitions[i] = partition{disk: s.config.FS, prefix: p, path: filepath.Join(s.config.Dir, "keys-"+p)}
	}
	return partitions
}

// Add adds a copy of a row. After an error nothing more may be added.
func (s *Sorter) Add(r *Row) error {
	if len(r.Value) > maxValueBytes {
		return fmt.Errorf("the value of a row takes %d bytes", len(r.Value))
	}
	return s.partitions[r.Key[0]].add(r)
}

// EachNewest calls visit for the newest row of each key whose first byte is in the range from first to last,
// in the order of keys, until visit returns an error, and returns that. A row is valid until visit returns. The rows of the range are
// removed on the way.
func (s *Sorter) EachNewest(first, last int, visit func(*Row) error) error {
	w := &walk{sorter: s, visit: visit}
	for i := range s.partitions[first : last+1] {
		if err := w.partition(&s.partitions[first+i], 1); err != nil {
			return err
		}
	}
	return w.flush()
}

// Close removes the files. All other calls must have returned.
func (s *Sorter) Close() error {
	for i := range s.partitions {
		s.partitions[i].remove()
	}
	return vfs.Clear(s.config.FS, s.config.Dir)
}
