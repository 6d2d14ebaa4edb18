package vfstest

import "math/rand/v2"

// node is a file of a Memory, whatever its name: its bytes as they are read, its bytes as of the
// last sync, and what happened in between. The Memory's lock guards it.
type node struct {
	id       uint64 // of all nodes of a Memory and its copies, from 1
	live     content
	durable  content
	unsynced []change
	lost     bool // a sync failed: live holds bytes that no sync makes durable any more
	named    bool // a directory names it
	open     int  // files open
	locked   bool
}

// change is something done to the bytes of a file since its last sync.
type change struct {
	action action
	resize bool   // the size changed
	offset int64  // of a write
	bytes  []byte // of a write
	size   int64  // of the file, afterwards
}

type action uint8

const (
	writeBytes action = iota
	truncate
	reserve
)

func newNode(id uint64, c content) *node {
	return &node{id: id, live: c, durable: c.share()}
}

func (n *node) writeAt(p []byte, off int64) {
	before := n.live.size
	n.live.writeAt(p, off)
	n.note(change{action: writeBytes, offset: off, bytes: append([]byte(nil), p...)}, before)
}

func (n *node) truncate(size int64) {
	before := n.live.size
	n.live.truncate(size)
	n.note(change{action: truncate}, before)
}

func (n *node) reserve(size int64) {
	before := n.live.size
	n.live.reserve(size)
	n.note(change{action: reserve}, before)
}

func (n *node) note(c change, before int64) {
	c.size = n.live.size
	c.resize = c.size != before
	n.unsynced = append(n.unsynced, c)
}

// sync makes what happened since the last one durable.
func (n *node) sync() {
	if len(n.unsynced) == 0 {
		return
	}
	if n.lost {
		n.durable = n.replay(func() bool { return true })
	} else {
		n.durable = n.live.share()
	}
	n.unsynced = nil
}

// lose does what Linux does when it fails to write pages back: they count as clean. They are
// still read, but no later sync writes them.
func (n *node) lose() {
	if len(n.unsynced) == 0 {
		return
	}
	n.lost, n.unsynced = true, nil
}

// survive returns the bytes as after a power cut.
func (n *node) survive(share float64, seed uint64) content {
	switch {
	case len(n.unsynced) == 0 || share <= 0:
		return n.durable.share()
	case share >= 1 && !n.lost:
		return n.live.share()
	}
	return n.replay(coin(share, seed, n.id))
}

// replay does again, on what is durable, what happened since. The system may have written any
// sector back after any change to it, with all bytes it had at that time; the newest of those that
// survive counts. The size is written in order: if a size survives, the cuts before it do too.
func (n *node) replay(survives func() bool) content {
	resizes := 0
	for i, c := range n.unsynced {
		if (c.resize || c.action != writeBytes) && survives() {
			resizes = i + 1
		}
	}
	cache, image := n.durable.share(), n.durable.share()
	for i, c := range n.unsynced {
		switch c.action {
		case writeBytes:
			cache.writeAt(c.bytes, c.offset)
			copySectors(&image, &cache, c.offset, int64(len(c.bytes)), survives)
		case truncate:
			cache.truncate(c.size)
			if i < resizes {
				image.truncate(c.size)
			}
		case reserve:
			cache.reserve(c.size)
			if i < resizes {
				image.reserve(c.size)
			}
		}
		if i < resizes {
			image.size = c.size
		}
	}
	image.truncate(image.size) // sectors that survived after its end are no part of the file
	return image
}

// copySectors copies those sectors that overlap a write and survive.
func copySectors(image, cache *content, offset, length int64, survives func() bool) {
	var sector [sectorBytes]byte
	for at := offset - offset%sectorBytes; at < offset+length; at += sectorBytes {
		if survives() {
			clear(sector[:])
			cache.readAt(sector[:], at)
			image.put(sector[:], at)
		}
	}
}

// coin returns a coin that shows true in a share of its tosses.
// The same share, seed and stream give the same tosses.
func coin(share float64, seed, stream uint64) func() bool {
	r := rand.New(rand.NewPCG(seed, stream))
	return func() bool { return r.Float64() < share }
}

// clone returns a copy, unsynced changes included.
func (n *node) clone() *node {
	copied := &node{id: n.id, live: n.live.share(), durable: n.durable.share(), lost: n.lost, named: n.named}
	copied.unsynced = append([]change(nil), n.unsynced...)
	return copied
}
