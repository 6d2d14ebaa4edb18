package vfstest

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"path"
)

// node is a file or a directory of a Memory, whatever its name. A file has its bytes as they are read, its bytes as
// of the last sync, and what happened in between. The Memory's lock guards it.
type node struct {
	id uint64 // of all nodes of a Memory and its copies

	names map[string]*node // of a directory, nil of a file
	kept  map[string]*node // those of a directory that would survive a crash

	live     content
	durable  content
	unsynced []change
	lost     bool // a sync failed: live holds bytes that no sync makes durable any more
	locked   bool
}

// change is something done to the bytes of a file since its last sync.
type change struct {
	do             func(*content)
	offset, length int64 // of the bytes that were written; length 0: it only set the size
	size           int64 // of the file, afterwards
	resize         bool  // the size changed
}

func newDir(id uint64) *node {
	return &node{id: id, names: map[string]*node{}, kept: map[string]*node{}}
}

func (n *node) isDir() bool { return n.names != nil }

// files calls visit for each file below a node that has the name, and for the node itself if it is a file.
func (n *node) files(name string, visit func(name string, file *node)) {
	if !n.isDir() {
		visit(name, n)
	}
	for base, below := range n.names {
		below.files(path.Join(name, base), visit)
	}
}

func (n *node) writeAt(p []byte, off int64) {
	if len(p) > 0 {
		p = bytes.Clone(p)
		n.change(off, int64(len(p)), func(c *content) { c.writeAt(p, off) })
	}
}

func (n *node) change(offset, length int64, do func(*content)) {
	before := n.live.size
	do(&n.live)
	n.unsynced = append(n.unsynced, change{do, offset, length, n.live.size, n.live.size != before})
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
	if len(n.unsynced) > 0 {
		n.lost, n.unsynced = true, nil
	}
}

// crash leaves of a node, and of all below it, what a power cut does.
func (n *node) crash(share float64, seed uint64) {
	if n.isDir() {
		n.names = maps.Clone(n.kept)
		for _, below := range n.names {
			below.crash(share, seed)
		}
		return
	}
	n.live = n.replay(coin(share, seed, n.id))
	n.durable, n.unsynced, n.lost = n.live.share(), nil, false
}

// replay does again, on what is durable, what happened since. The system may have written any
// sector back after any change to it, with all bytes it had at that time; the newest of those that
// survive counts. The size is written in order: if a size survives, the cuts before it do too.
func (n *node) replay(survives func() bool) content {
	resizes := 0
	for i, c := range n.unsynced {
		if (c.resize || c.length == 0) && survives() {
			resizes = i + 1
		}
	}
	cache, image := n.durable.share(), n.durable.share()
	for i, c := range n.unsynced {
		c.do(&cache)
		if c.length > 0 {
			copySectors(&image, &cache, c.offset, c.length, survives)
		} else if i < resizes {
			c.do(&image)
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
