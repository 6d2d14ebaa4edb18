package snapshot

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// lostFiles are the history files that this process found damaged and that a snapshot still names. A file stays one of them
// until no snapshot that is kept names it: so nothing of it is answered in one place and missing in another.
type lostFiles struct {
	mu    sync.Mutex
	names map[string]bool
}

// Lost returns the names of the history files that were found damaged since the process started and are still needed, oldest first. It
// waits for nothing that takes long.
func (s *Store) Lost() []string {
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	return slices.Sorted(maps.Keys(s.lost.names))
}

// lose notes that a history file is damaged, and logs that once. It returns the error where that is not damage, or of the newest
// file of a snapshot, without which the snapshot is of no use.
func (s *Store) lose(ref HistoryRef, newest bool, err error) error {
	if newest || !errors.Is(err, ErrDamaged) {
		return err
	}
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	if !s.lost.names[ref.Name] {
		s.lost.names[ref.Name] = true
		s.log.Error("a history file is damaged: what it held and memory does not is not indexed; the file is kept", "error", err,
			"from_slot", uint64(ref.First), "to_slot", uint64(ref.Last))
	}
	return nil
}

// isLost reports whether a history file was found damaged.
func (s *Store) isLost(name string) bool {
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	return s.lost.names[name]
}

// keepLost forgets all lost files but those needed.
func (s *Store) keepLost(needed []string) {
	s.lost.mu.Lock()
	defer s.lost.mu.Unlock()
	maps.DeleteFunc(s.lost.names, func(name string, _ bool) bool { return !slices.Contains(needed, name) })
}
