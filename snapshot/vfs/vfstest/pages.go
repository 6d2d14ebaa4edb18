package vfstest

import "slices"

const (
	// pageBytes is what space is taken in, as on most real disks. A file that grows by little
	// writes and syncs copies a page for each, so the page must be small.
	pageBytes = 4096
	// sectorBytes is what a disk writes whole or not at all.
	sectorBytes = 512
)

// content is the bytes of a file. A page that is nil or missing reads as zeros, and so does what lies
// between the last page and the size. Bytes after the size are zero. A page is replaced and never changed,
// so any number of contents, of any number of disks, share it.
type content struct {
	pages    []*[pageBytes]byte
	size     int64
	reserved int // so many pages from the first have their space taken, written or not
}

// pagesFor returns how many pages so many bytes take.
func pagesFor(size int64) int { return int((size + pageBytes - 1) / pageBytes) }

// readAt fills p from off, and returns how much of it there was before the end.
func (c *content) readAt(p []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	for rest := p; len(rest) > 0; {
		index, in := int(off/pageBytes), int(off%pageBytes)
		n := min(len(rest), pageBytes-in)
		if index < len(c.pages) && c.pages[index] != nil {
			copy(rest[:n], c.pages[index][in:])
		} else {
			clear(rest[:n])
		}
		rest, off = rest[n:], off+int64(n)
	}
	return len(p)
}

// writeAt puts p at off, and makes the content longer where it has to be.
func (c *content) writeAt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	c.size = max(c.size, off+int64(len(p)))
	c.put(p, off)
}

// put is writeAt without a change of the size.
func (c *content) put(p []byte, off int64) {
	for len(p) > 0 {
		n := copy(c.replace(int(off / pageBytes))[off%pageBytes:], p)
		p, off = p[n:], off+int64(n)
	}
}

// replace puts a copy in the place of a page and returns it, to be changed before anything else is done.
func (c *content) replace(index int) *[pageBytes]byte {
	if index >= len(c.pages) {
		c.pages = append(c.pages, make([]*[pageBytes]byte, index+1-len(c.pages))...)
	}
	next := new([pageBytes]byte)
	if old := c.pages[index]; old != nil {
		*next = *old
	}
	c.pages[index] = next
	return next
}

// truncate makes the content so long, cut or filled up with zeros.
func (c *content) truncate(size int64) {
	count := pagesFor(size)
	c.size, c.reserved = size, min(c.reserved, count)
	if count <= len(c.pages) {
		if in := size % pageBytes; in != 0 && c.pages[count-1] != nil {
			clear(c.replace(count - 1)[in:])
		}
		clear(c.pages[count:])
		c.pages = c.pages[:count]
	}
}

// reserve takes the space of all pages up to size, and makes the content at least so long.
func (c *content) reserve(size int64) {
	c.size, c.reserved = max(c.size, size), max(c.reserved, pagesFor(size))
}

// taken returns how many pages take space.
func (c *content) taken() int {
	n := c.reserved
	for i := c.reserved; i < len(c.pages); i++ {
		if c.pages[i] != nil {
			n++
		}
	}
	return n
}

// missing returns how many pages a write of so many bytes would newly take space for.
func (c *content) missing(off, length int64) int {
	n := 0
	for i := max(int(off/pageBytes), c.reserved); i < pagesFor(off+length); i++ {
		if i >= len(c.pages) || c.pages[i] == nil {
			n++
		}
	}
	return n
}

// share returns a copy, which has the pages in common.
func (c *content) share() content {
	copied := *c
	copied.pages = slices.Clone(c.pages)
	return copied
}
