package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Store is a directory of snapshots and history files.
type Store struct {
	fs  vfs.FS
	dir string
	log *slog.Logger

	// mu excludes Write and Prune from each other: Prune must not see a history file whose
	// snapshot is still being written.
	mu sync.Mutex
	// verified are the files of which this process has read back every byte since it
	// started. It is touched under mu alone.
	verified map[string]FileHash
	// lost are the names of the history files that this process could not read or found damaged. A name stays in it until no
	// snapshot that is kept names the file, so that all answers agree about the blocks of the file.
	lost sync.Map
}

// Info names a snapshot.
type Info struct {
	Name    string // of its file in the directory
	Slot    ledger.Slot
	Version ledger.Version
	Bytes   int64 // of its file, without history
}

// Written says what Write did.
type Written struct {
	Info
	Meta         *Meta // as it was written
	HistoryBytes int64 // of the history file that was added, 0 if none was
	Took         time.Duration
}

// OpenStore returns the store in dir, which it makes if need be. It removes what was left
// unfinished by a crash, so no other process may be writing there; log nil means
// slog.Default.
func OpenStore(disk vfs.FS, dir string, log *slog.Logger) (*Store, error) {
	if err := disk.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("cannot make the directory of snapshots: %w", err)
	}
	s := ViewStore(disk, dir, log)
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !isTemporary(name) {
			continue
		}
		if err := disk.Remove(filepath.Join(dir, name)); err != nil {
			s.log.Warn("cannot remove an unfinished snapshot file", "file", name, "error", err)
			continue
		}
		s.log.Info("removed an unfinished snapshot file", "file", name)
	}
	return s, nil
}

// ViewStore returns the store in dir as it is, to list and open snapshots of a directory
// that another process may be writing to. It touches nothing.
func ViewStore(disk vfs.FS, dir string, log *slog.Logger) *Store {
	return &Store{fs: disk, dir: dir, log: cmp.Or(log, slog.Default()), verified: make(map[string]FileHash)}
}

func (s *Store) names() ([]string, error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the directory of snapshots: %w", err)
	}
	return names, nil
}

// List returns the snapshots, newest first, good or not.
func (s *Store) List() ([]Info, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var infos []Info
	for _, name := range names {
		slot, version, ok := parseStateName(name)
		if !ok {
			continue
		}
		bytes, err := vfs.Size(s.fs, filepath.Join(s.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the size of %s: %w", name, err)
		}
		infos = append(infos, Info{name, slot, version, bytes})
	}
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(b.Slot, a.Slot))
	})
	return infos, nil
}

// verifyLocked makes sure that every byte of a file was read back since the process started.
func (s *Store) verifyLocked(ctx context.Context, pace Pace, f *file) error {
	if s.verified[f.name] == f.hash {
		return nil
	}
	if _, err := f.checkItems(ctx, pace); err != nil {
		return err
	}
	s.verified[f.name] = f.hash
	return nil
}
