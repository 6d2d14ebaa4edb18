package vfs

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// ErrLocked says that another process holds a lock.
var ErrLocked = errors.New("locked by another process")

// IsFull tells whether a call failed for want of space: the disk is full, its owner's share of
// it is, or it took only a part of what was written. A sync that fails, a [SyncError], is another
// matter, whatever its reason.
func IsFull(err error) bool {
	var failed *SyncError
	return !errors.As(err, &failed) && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, io.ErrShortWrite))
}

// IsOutOfFiles tells whether a call failed because the process, or the system, may not open another
// file. Then the call did nothing, a SyncDir included: that opens the directory.
func IsOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// IsShortage tells whether a call failed because at that moment the process, or the system, could not open another file or had no
// memory. Of the file that was to be opened or read it says nothing.
func IsShortage(err error) bool { return IsOutOfFiles(err) || errors.Is(err, syscall.ENOMEM) }

// SyncError is a sync that failed, of a file or a directory: what is on disk is not known.
type SyncError struct{ Err error }

// Error returns what the disk said, after "cannot sync".
func (e *SyncError) Error() string { return "cannot sync: " + e.Err.Error() }

// Unwrap returns what the disk said.
func (e *SyncError) Unwrap() error { return e.Err }

// FormatError says that a file was written by a newer program in a format that this one does
// not read. It is not damage: the file is whole and must stay, and the program that wrote it is to
// be used.
type FormatError struct {
	File    string
	Version uint32 // the file's
	Newest  uint32 // the newest that can be read
}

// Error names both versions.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format version %d, this program reads up to %d", e.File, e.Version, e.Newest)
}
