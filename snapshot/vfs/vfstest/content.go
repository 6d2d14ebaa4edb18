package vfstest

import "slices"

const (
	// pageBytes is what space is taken in, as on most real disks.
	pageBytes = 4096
	// sectorBytes is what a disk writes whole or not at all.
	sectorBytes = 512
)

// content is the bytes of a file. What lies between the end of data and the size reads as zeros. Bytes of data are
// never changed once they are there, so contents, also of several disks, share it: only one of them has room after it, to append.
type content struct {
	data     []byte
	size     int64
	reserved int64 // so many bytes have their space taken, written or not
}

// pagesFor returns how many pages so many bytes take.
func pagesFor(size int64) int { return int((size + pageBytes - 1) / pageBytes) }

// readAt fills p from off, and returns how much of it there was before the end.
func (c *content) readAt(p []byte, off int64) int {
	if off >= c.size {
		return 0
	}
	p = p[:min(int64(len(p)), c.size-off)]
	n := copy(p, c.data[min(off, int64(len(c.data))):])
	clear(p[n:])
	return len(p)
}

// writeAt puts p at off, and makes the content longer where it has to be.
func (c *content) writeAt(p []byte, off int64) {
	if len(p) > 0 {
		c.size = max(c.size, off+int64(len(p)))
		c.put(p, off)
	}
}

// put is writeAt without a change of the size.
func (c *content) put(p []byte, off int64) {
	if gap := off - int64(len(c.data)); gap >= 0 {
		c.data = append(append(c.data, make([]byte, gap)...), p...)
		return
	}
	tail := c.data[min(off+int64(len(p)), int64(len(c.data))):]
	c.data = slices.Concat(c.data[:off], p, tail)
}

// truncate makes the content so long, cut or filled up with zeros.
func (c *content) truncate(size int64) {
	n := min(size, int64(len(c.data)))
	c.data = c.data[:n:n]
	c.size, c.reserved = size, min(c.reserved, size)
}

// reserve takes the space up to size, and makes the content at least so long.
func (c *content) reserve(size int64) {
	c.size, c.reserved = max(c.size, size), max(c.reserved, size)
}

// taken returns how many pages take space: all up to the last that was written or reserved.
func (c *content) taken() int { return pagesFor(max(int64(len(c.data)), c.reserved)) }

// share returns a copy, which has the bytes in common and no room after them.
func (c *content) share() content {
	copied := *c
	copied.data = slices.Clip(c.data)
	return copied
}
