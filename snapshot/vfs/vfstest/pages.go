package vfstest

import "slices"

const (
	// pageBytes is what space is taken in, as on most real disks. A file that grows by little
	// writes and syncs copies a page for each, so the page must be small.
	pageBytes = 4096
	// sectorBytes is what a disk writes whole or not at all.
	sectorBytes = 512
)

// page is a run of bytes of a file, and whether they are this content's alone. If not, any number
// of contents, of any number of disks, may have them too, and none changes them any more.
type page struct {
	bytes *[pageBytes]byte // nil: zeros
	own   bool
}

// content is the bytes of a file. A page that is missing reads as zeros, and so does what lies
// between the last page and the size. Bytes behind the size are zero.
type content struct {
	pages    []page
	size     int64
	reserved int   // so many pages from the first have their space taken, written or not
	taken    int   // how many pages take space
	fresh    []int // the pages changed since the last forgetFresh; one may be named twice
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
		if index < len(c.pages) && c.pages[index].bytes != nil {
			copy(rest[:n], c.pages[index].bytes[in:])
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
		n := copy(c.own(int(off / pageBytes))[off%pageBytes:], p)
		p, off = p[n:], off+int64(n)
	}
}

// own returns the bytes of a page, which are this content's alone from then on.
func (c *content) own(index int) *[pageBytes]byte {
	if index >= len(c.pages) {
		c.pages = append(c.pages, make([]page, index+1-len(c.pages))...)
	}
	old := c.pages[index]
	if old.own {
		return old.bytes
	}
	bytes := new([pageBytes]byte)
	if old.bytes != nil {
		*bytes = *old.bytes
	} else if index >= c.reserved {
		c.taken++
	}
	c.pages[index] = page{bytes, true}
	c.fresh = append(c.fresh, index)
	return bytes
}

// truncate makes the content so long, cut or filled up with zeros.
func (c *content) truncate(size int64) {
	count := pagesFor(size)
	c.size, c.reserved = size, min(c.reserved, count)
	if count <= len(c.pages) {
		if in := size % pageBytes; in != 0 && c.pages[count-1].bytes != nil {
			clear(c.own(count - 1)[in:])
		}
		clear(c.pages[count:])
		c.pages = c.pages[:count]
	}
	c.recount()
}

// reserve takes the space of all pages up to size, and makes the content at least so long.
func (c *content) reserve(size int64) {
	c.size, c.reserved = max(c.size, size), max(c.reserved, pagesFor(size))
	c.recount()
}

func (c *content) recount() {
	c.taken = c.reserved
	for i := c.reserved; i < len(c.pages); i++ {
		if c.pages[i].bytes != nil {
			c.taken++
		}
	}
}

// missing returns how many pages a write of so many bytes would newly take space for.
func (c *content) missing(off, length int64) int {
	n := 0
	for i := max(int(off/pageBytes), c.reserved); i < pagesFor(off+length); i++ {
		if i >= len(c.pages) || c.pages[i].bytes == nil {
			n++
		}
	}
	return n
}

// share returns a copy. The two have their pages in common until either writes them.
func (c *content) share() content {
	c.disown()
	copied := *c
	copied.pages = slices.Clone(c.pages)
	copied.fresh = nil
	return copied
}

// disown lets others have all pages too.
func (c *content) disown() {
	for _, i := range c.fresh {
		if i < len(c.pages) {
			c.pages[i].own = false
		}
	}
}

// forgetFresh begins a new list of changed pages.
func (c *content) forgetFresh() {
	c.disown()
	c.fresh = c.fresh[:0]
}

// follow makes c equal to next, which was equal to c when its list of changed pages began and
// was never shorter than low since. It costs what was changed, not what there is.
func (c *content) follow(next *content, low int64) {
	next.disown()
	if count := pagesFor(low); count < len(c.pages) {
		clear(c.pages[count:])
		c.pages = c.pages[:count]
	}
	for _, i := range next.fresh {
		if i >= len(next.pages) {
			continue
		}
		if i >= len(c.pages) {
			c.pages = append(c.pages, make([]page, i+1-len(c.pages))...)
		}
		c.pages[i] = next.pages[i]
	}
	c.size, c.reserved, c.taken = next.size, next.reserved, next.taken
	next.fresh = next.fresh[:0]
}
