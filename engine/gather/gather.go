package gather

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// defaultMemoryBytes holds a pile of half a million accounts.
const defaultMemoryBytes = 64 << 20

// Piles is how many there are: a range of first bytes is within 0 to Piles-1.
const Piles = 256

// Config says where a gathering lies.
type Config struct {
	FS  vfs.FS
	Dir string // made anew, with what is in it removed
	// MemoryBytes bounds the rows that one caller of Newest holds; 0: 64 MiB.
	MemoryBytes int64
}

// Gathering is rows on their way.
type Gathering struct {
	c     Config
	piles []pile
}

// New makes an empty gathering.
func New(c Config) (*Gathering, error) {
	if c.MemoryBytes == 0 {
		c.MemoryBytes = defaultMemoryBytes
	}
	if err := Clear(c.FS, c.Dir); err != nil {
		return nil, err
	}
	if err := c.FS.MkdirAll(c.Dir); err != nil {
		return nil, fmt.Errorf("cannot make %s: %w", c.Dir, err)
	}
	g := &Gathering{c: c}
	g.piles = g.spread("")
	return g, nil
}

// Clear removes what a gathering that did not end left in its directory.
func Clear(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, name := range names {
		err = errors.Join(err, disk.Remove(filepath.Join(dir, name)))
	}
	if err != nil {
		return fmt.Errorf("cannot clear %s: %w", dir, err)
	}
	return nil
}

// spread returns empty piles for the next byte of keys that begin as start says.
func (g *Gathering) spread(start string) []pile {
	piles := make([]pile, Piles)
	for i := range piles {
		piles[i] = pile{disk: g.c.FS, name: filepath.Join(g.c.Dir, fmt.Sprintf("keys-%s%02x", start, i))}
	}
	return piles
}

// Add adds a row, of which nothing is kept. After an error nothing more may be added.
func (g *Gathering) Add(r *Row) error {
	if len(r.Value) > maxValueBytes {
		return fmt.Errorf("the value of a row takes %d bytes", len(r.Value))
	}
	return g.piles[r.Key[0]].add(r)
}

// Finish says that all was added.
func (g *Gathering) Finish() error {
	for i := range g.piles {
		if err := g.piles[i].finish(); err != nil {
			return err
		}
	}
	return nil
}

// Bytes returns how much was added from the first byte on, up to and with the last.
func (g *Gathering) Bytes(first, last int) (n int64) {
	for i := range g.piles[first : last+1] {
		n += g.piles[first+i].bytes
	}
	return n
}

// Newest calls visit for the newest row of each key that begins with a byte from first to last, in
// the order of keys, and gives up what was visited. A row is good until visit returns.
func (g *Gathering) Newest(first, last int, visit func(*Row) error) error {
	s := &sorter{g: g, visit: visit}
	for i := range g.piles[first : last+1] {
		p := &g.piles[first+i]
		if err := s.newest(p, fmt.Sprintf("%02x", first+i), 1); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the files. It may be called at any time once all others returned.
func (g *Gathering) Close() error {
	for i := range g.piles {
		g.piles[i].remove()
	}
	return Clear(g.c.FS, g.c.Dir)
}

// sorter hands out piles one after the other. It belongs to one goroutine.
type sorter struct {
	g     *Gathering
	visit func(*Row) error
	room  []byte
	order []placed
}

// placed is where a row lies, with the beginning of what it is sorted by.
type placed struct {
	prefix uint64
	at     uint32
}

// newest visits the newest rows of a pile whose keys begin alike up to a depth.
func (s *sorter) newest(p *pile, start string, depth int) error {
	defer p.remove()
	switch {
	case p.bytes <= s.g.c.MemoryBytes && p.bytes < 1<<32:
		return s.sorted(p)
	case depth == len(ledger.Pubkey{}):
		return s.only(p)
	}
	below := s.g.spread(start)
	defer func() {
		for i := range below {
			below[i].remove()
		}
	}()
	err := p.each(func(r *Row) error { return below[r.Key[depth]].add(r) })
	p.remove()
	for i := range below {
		if err == nil {
			err = below[i].finish()
		}
	}
	for i := range below {
		if err == nil {
			err = s.newest(&below[i], fmt.Sprintf("%s%02x", start, i), depth+1)
		}
	}
	return err
}

// sorted visits the newest rows of a pile that fits the memory.
func (s *sorter) sorted(p *pile) (err error) {
	if s.room, err = p.load(s.room); err != nil {
		return err
	}
	s.order = s.order[:0]
	var r, o Row
	for at := 0; at < len(s.room); {
		n, err := decodeRow(s.room[at:], &r)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", p.name, err)
		}
		s.order = append(s.order, placed{r.Key.Prefix(), uint32(at)})
		at += n
	}
	key := func(x placed) []byte { return s.room[x.at : x.at+uint32(len(r.Key))] }
	slices.SortFunc(s.order, func(a, b placed) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return cmp.Or(slices.Compare(key(a), key(b)), cmp.Compare(a.at, b.at))
	})
	for i := 0; i < len(s.order); {
		decodeRow(s.room[s.order[i].at:], &r) // as above
		for i++; i < len(s.order) && slices.Equal(key(s.order[i]), r.Key[:]); i++ {
			if decodeRow(s.room[s.order[i].at:], &o); !o.olderThan(&r) {
				r = o
			}
		}
		if err := s.visit(&r); err != nil {
			return err
		}
	}
	return nil
}

// only visits the newest row of a pile of one key.
func (s *sorter) only(p *pile) error {
	var newest Row
	var value []byte
	any := false
	err := p.each(func(r *Row) error {
		if !any || !r.olderThan(&newest) {
			value = append(value[:0], r.Value...)
			newest, any = *r, true
			newest.Value = value
		}
		return nil
	})
	if err != nil || !any {
		return err
	}
	return s.visit(&newest)
}
