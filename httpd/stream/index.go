package stream

import (
	"runtime"
	"slices"

	"ledgerd/engine/ledger"
)

// index leads from a key to the subscribers that named it.
type index map[ledger.Pubkey]*watchers

// watchers are the subscribers that named one key, in no order. Of few the list is searched; of many it is known where each stands,
// so that a popular name is taken back as fast as any other.
type watchers struct {
	list   []*subscriber
	places map[*subscriber]int // in the list; nil while there are few
}

// fewWatchers is how many are found by a search about as fast as by a map.
const fewWatchers = 16

// add enters a subscriber that is not there yet under each of the keys.
func (x index) add(keys []ledger.Pubkey, s *subscriber) {
	for _, k := range keys {
		w := x[k]
		if w == nil {
			w = new(watchers)
			x[k] = w
		}
		w.add(s)
	}
}

// remove takes a subscriber out where it is there under one of the keys, and returns under how many it was.
func (x index) remove(keys []ledger.Pubkey, s *subscriber) (removed int) {
	for _, k := range keys {
		w := x[k]
		if w == nil || !w.remove(s) {
			continue
		}
		if removed++; len(w.list) == 0 {
			delete(x, k)
		}
	}
	return removed
}

func (w *watchers) add(s *subscriber) {
	w.list = append(w.list, s)
	switch {
	case w.places != nil:
		w.places[s] = len(w.list) - 1
	case len(w.list) > fewWatchers:
		w.places = make(map[*subscriber]int, len(w.list))
		for place, one := range w.list {
			w.places[one] = place
		}
	}
}

// remove takes a subscriber out, if it is there.
func (w *watchers) remove(s *subscriber) (found bool) {
	place, found := w.places[s]
	if w.places == nil {
		place = slices.Index(w.list, s)
		found = place >= 0
	}
	if !found {
		return false
	}
	last := len(w.list) - 1
	w.list[place] = w.list[last]
	w.list[last] = nil
	w.list = w.list[:last]
	if w.places != nil {
		delete(w.places, s)
		if place < last {
			w.places[w.list[place]] = place
		}
	}
	return true
}

const (
	// nameBytes is what a name takes: in the tree of its subscriber, and in the index if nobody else has it.
	nameBytes = 192
	// clientShare is the part of the memory for clients that the names of one client may take.
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

// unlink takes a subscriber out of the index under all of its names, some at a time, because others want the hub's lock too. Connections that
// end together take turns, so that the others wait for one of them and not for all.
func (s *subscriber) unlink(all nameSet) {
	if all.count() == 0 {
		return
	}
	s.hub.unlinking.Lock()
	defer s.hub.unlinking.Unlock()
	for kind, keys := range all.lists() {
		for some := range slices.Chunk(keys, namesAtOnce) {
			s.giveNames(s.unlinkSome(nameKind(kind), some))
			runtime.Gosched() // they want a processor too
		}
	}
}

func (s *subscriber) unlinkSome(kind nameKind, keys []ledger.Pubkey) int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.audience().indexes[kind].remove(keys, s)
}
