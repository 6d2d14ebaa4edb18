package stream

import (
	"runtime"
	"slices"
)

// index leads from a key to those that named it: subscribers or topics.
type index[K, W comparable] map[K]*watchers[W]

// watchers are the subscribers or topics of one key, in no order. A short list is searched; for a long one a map has the place of each
// watcher, so that removing one takes the same time however many there are.
type watchers[W comparable] struct {
	list   []W
	places map[W]int // in the list; nil while there are few
}

// fewWatchers is how many are found by a search about as fast as by a map.
const fewWatchers = 16

// at returns those that named a key.
func (x index[K, W]) at(k *K) []W {
	if w := x[*k]; w != nil {
		return w.list
	}
	return nil
}

// add enters one that is not there yet under each of the keys.
func (x index[K, W]) add(keys []K, one W) {
	for _, k := range keys {
		w := x[k]
		if w == nil {
			w = new(watchers[W])
			x[k] = w
		}
		w.add(one)
	}
}

// remove takes one out where it is there under one of the keys, and returns under how many it was.
func (x index[K, W]) remove(keys []K, one W) (removed int) {
	for _, k := range keys {
		w := x[k]
		if w == nil || !w.remove(one) {
			continue
		}
		if removed++; len(w.list) == 0 {
			delete(x, k)
		}
	}
	return removed
}

// put enters one under keys where it is not there yet, or takes it out.
func (x index[K, W]) put(keys []K, one W, in bool) {
	if in {
		x.add(keys, one)
	} else {
		x.remove(keys, one)
	}
}

func (w *watchers[W]) add(one W) {
	w.list = append(w.list, one)
	switch {
	case w.places != nil:
		w.places[one] = len(w.list) - 1
	case len(w.list) > fewWatchers:
		w.places = make(map[W]int, len(w.list))
		for place, one := range w.list {
			w.places[one] = place
		}
	}
}

// remove takes one out, if it is there.
func (w *watchers[W]) remove(one W) (found bool) {
	place, found := w.places[one]
	if w.places == nil {
		place = slices.Index(w.list, one)
		found = place >= 0
	}
	if !found {
		return false
	}
	last := len(w.list) - 1
	w.list[place] = w.list[last]
	clear(w.list[last:])
	w.list = w.list[:last]
	if w.places != nil {
		delete(w.places, one)
		if place < last {
			w.places[w.list[place]] = place
		}
	}
	return true
}

const (
	// nameBytes is what a name takes: in the tree of its subscriber, and in the index if nobody else has it.
	nameBytes = 192
	// nodeBytes is what a name takes in a tree. What waits for the client may refer to the tree from before a change.
	nodeBytes = 64
	// clientShare bounds to one part in so many of the memory for clients, each by itself: the names of one client, what its connections
	// read of the log, and the snapshots that wait for them.
	clientShare = 8
	// namesAtOnce is how many names are taken out of the index while others wait for the hub's lock: some 0.2 ms.
	namesAtOnce = 256
)

// takeNames takes memory for more names of a connection; false if there is none left for it, or for its client.
func (s *connection) takeNames(count int) bool {
	s.giveNames(-count)
	if count == 0 || s.hub.memory.Allows(s.named*nameBytes) && s.seat.named.Load()*nameBytes <= s.hub.config.Memory.Limit()/clientShare {
		return true
	}
	s.giveNames(count)
	return false
}

// giveNames gives the memory of names back.
func (s *connection) giveNames(count int) {
	s.named -= count
	s.seat.named.Add(-int64(count))
	s.hub.memory.Hold(-count * nameBytes)
}

// inParts calls doSome with the hub's lock until there is no more to do, and releases the lock between two calls, because others want
// it too. Connections that end together take turns, so that others wait for one of them and not for all.
func (h *Hub) inParts(doSome func() (more bool)) {
	h.unlinking.Lock()
	defer h.unlinking.Unlock()
	for more := true; more; {
		more = h.locked(doSome)
		runtime.Gosched() // they want a processor too
	}
}

func (h *Hub) locked(do func() bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return do()
}

// unlink takes a subscriber out of the index under all of its names.
func (s *subscriber) unlink(all nameSet) {
	for kind, keys := range all.lists() {
		if len(keys) == 0 {
			continue
		}
		s.hub.inParts(func() (more bool) {
			some := keys[:min(len(keys), namesAtOnce)]
			keys = keys[len(some):]
			s.giveNames(s.audience().indexes[kind].remove(some, s))
			return len(keys) > 0
		})
	}
}
