package wal

import (
	"errors"
	"fmt"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

var (
	// ErrTorn says that the input ends inside a frame or in zeros that were never written.
	ErrTorn = errors.New("cut short")
	// ErrCorrupt says that bytes are not what was written. Where the place is known, the
	// error is a *CorruptError, which matches it.
	ErrCorrupt = errors.New("corrupt log")
	// ErrMissing says that the log does not hold the record that a replay was to begin with.
	ErrMissing = errors.New("records missing from the log")
	// ErrNoSpace says that the disk is full, that it took only a part of what was written, or that
	// no further file may be opened. Nothing of the commit is in the log, and the caller may retry it.
	ErrNoSpace = errors.New("no space for the log")
	// ErrFailed says that the log failed for good: it is unknown what is on disk, and the log is
	// never written or synced again.
	ErrFailed = errors.New("the log has failed and is not written any more")
	// ErrClosed says that the log was closed.
	ErrClosed = errors.New("the log is closed")
)

// CorruptError is damage to the log and where it is. It matches ErrCorrupt.
type CorruptError struct {
	Segment     string // path of the file
	Offset      int64  // in the file, where the first damaged frame or header begins
	LastVersion ledger.Version
	LastSlot    ledger.Slot // the chain's tip after LastVersion, the end of the last whole commit before the damage
	Reason      string
}

// Error names the place and the last record before it.
func (e *CorruptError) Error() string {
	last := "there is no whole commit before it"
	if e.LastVersion > 0 {
		last = fmt.Sprintf("the last good record is %d, at slot %d", e.LastVersion, e.LastSlot)
	}
	return fmt.Sprintf("the log is damaged in %s at byte %d: %s; %s", e.Segment, e.Offset, e.Reason, last)
}

// reasonOf returns err as the reason of a CorruptError, without the words that CorruptError adds itself.
func reasonOf(err error) string { return strings.TrimPrefix(err.Error(), ErrCorrupt.Error()+": ") }

// Is makes every CorruptError match ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// replaceFile is vfs.Replace with the errors of the log.
func replaceFile(c *Config, name string, fill func(vfs.File) error) (vfs.File, error) {
	f, err := vfs.Replace(c.FS, name, fill)
	return f, outOfSpace(err)
}

// outOfSpace makes err, from anything but a sync, match ErrNoSpace if lack of space or of files is the cause.
func outOfSpace(err error) error {
	if !errors.Is(err, ErrNoSpace) && (vfs.IsFull(err) || vfs.IsOutOfFiles(err)) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	return err
}

// syncDir syncs the directory of a log. Its error matches ErrNoSpace if the directory could not be opened.
func syncDir(disk vfs.FS, dir string) error {
	err := disk.SyncDir(dir)
	if vfs.IsOutOfFiles(err) {
		err = fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if err != nil {
		return fmt.Errorf("cannot sync the directory of the log: %w", err)
	}
	return nil
}

// writeAt writes b at off.
func writeAt(f vfs.File, b []byte, off int64) error {
	_, err := f.WriteAt(b, off)
	return outOfSpace(err)
}
