package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// Prune keeps the newest keep snapshots that are intact: this process has read back every byte of them, and every byte is as it
// was written, except in history files other than the newest. Prune removes the snapshots older than these, then the history
// files that no snapshot needs, oldest first. It removes a damaged file when it would remove an intact one, no sooner.
//
// It returns the meta of the oldest snapshot kept: the log up to its record is not needed any more. It returns nil, and
// removes nothing, if fewer than keep snapshots are intact; it logs the damaged ones. After a crash or an error files that were
// to be removed may still exist, and the next Prune removes them. Prune reads what this process has not read yet at the given pace.
func (s *Store) Prune(ctx context.Context, keep int, pace Pace) (oldest *Meta, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if keep < 1 {
		return nil, fmt.Errorf("cannot prune down to %d snapshots", keep)
	}
	infos, err := s.List()
	if err != nil {
		return nil, err
	}
	var needed []string // history files of the kept ones
	whole := true       // every snapshot down to the oldest one kept
	for n, i := range infos {
		snapshot, err := s.salvageLocked(ctx, i, pace)
		if err == nil {
			err = s.verifyLocked(ctx, pace, snapshot.state)
		}
		if errors.Is(err, ErrDamaged) {
			s.log.Warn("a snapshot does not count: it is damaged", "error", err)
			whole = false
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot prune snapshots: %w", err)
		}
		for _, ref := range snapshot.meta.History {
			needed = append(needed, ref.Name)
		}
		if keep--; keep > 0 {
			continue
		}
		oldest = snapshot.meta
		var older []string // oldest first
		for _, i := range slices.Backward(infos[n+1:]) {
			older = append(older, i.Name)
		}
		if err := s.removeLocked(older); err != nil {
			return nil, err
		}
		// A damaged snapshot among those kept may be repaired by hand: then it needs its history.
		if whole {
			err = s.removeHistoryLocked(needed)
		}
		return oldest, err
	}
	return nil, nil
}

// salvageLocked is Salvage where every byte of the history is read back at a pace, if this process has not done so yet.
func (s *Store) salvageLocked(ctx context.Context, i Info, pace Pace) (*Snapshot, error) {
	snapshot, err := s.Salvage(i)
	if err != nil {
		return nil, err
	}
	for n, f := range snapshot.history {
		if f != nil && !s.isLost(f.name) {
			if err = s.verifyLocked(ctx, pace, f); err == nil {
				continue
			}
			if err := s.lose(snapshot.meta.History[n], n == len(snapshot.history)-1, err); err != nil {
				return nil, err
			}
		}
		snapshot.history[n] = nil
	}
	return snapshot, nil
}

// removeLocked removes files in the order given.
func (s *Store) removeLocked(names []string) error {
	for _, name := range names {
		delete(s.verified, name)
		if err := s.fs.Remove(filepath.Join(s.dir, name)); err != nil {
			return fmt.Errorf("cannot remove %s: %w", name, err)
		}
		s.log.Debug("removed a file of an old snapshot", "file", name)
	}
	return nil
}

// removeHistoryLocked removes all history files but those needed.
func (s *Store) removeHistoryLocked(needed []string) error {
	names, err := s.names()
	if err != nil {
		return err
	}
	s.keepLost(needed)
	names = slices.DeleteFunc(names, func(name string) bool {
		_, _, ok := parseBlocksName(historyPrefix, name)
		return !ok || slices.Contains(needed, name)
	})
	if len(names) == 0 {
		return nil
	}
	// Make the removals so far durable first: no crash may bring back a snapshot without its history.
	if err := s.fs.SyncDir(s.dir); err != nil {
		return fmt.Errorf("cannot sync the directory of snapshots: %w", err)
	}
	return s.removeLocked(names)
}
