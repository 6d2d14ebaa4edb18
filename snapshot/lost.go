package snapshot

import (
	"errors"
	"slices"
	"syscall"
)

// Lost returns the names of the history files that could not be read or were found damaged since the process started and are still
// needed, oldest first. It waits for nothing that takes long.
func (s *Store) Lost() (names []string) {
	for name := range s.lost.Range {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	return names
}

// isPermanent reports whether reading the file again would fail again: the file is damaged, or the disk cannot read a sector of it.
func isPermanent(err error) bool { return errors.Is(err, ErrDamaged) || errors.Is(err, syscall.EIO) }

// lose notes that a history file cannot be read or is damaged, and logs that once. It returns err if err says neither, or if the
// file is the newest of a snapshot, which cannot be used without it.
func (s *Store) lose(ref HistoryRef, newest bool, err error) error {
	if newest || !isPermanent(err) {
		return err
	}
	if _, known := s.lost.LoadOrStore(ref.Name, nil); !known {
		s.log.Error("a history file cannot be read, or is damaged: what it held and memory does not is not indexed; the file is kept, and a restart looks again", "error", err,
			"from_slot", uint64(ref.First), "to_slot", uint64(ref.Last))
	}
	return nil
}

// isLost reports whether a history file could not be read or was found damaged.
func (s *Store) isLost(name string) bool {
	_, lost := s.lost.Load(name)
	return lost
}

// keepLost forgets all lost files but those needed.
func (s *Store) keepLost(needed []string) {
	for name := range s.lost.Range {
		if !slices.Contains(needed, name.(string)) {
			s.lost.Delete(name)
		}
	}
}
