package vfs

import "io"

// FS is a disk. Errors are those of package os: they match fs.ErrNotExist, fs.ErrExist and the
// syscall.Errno they wrap, such as syscall.ENOSPC.
// Calls about different names may run at once.
type FS interface {
	// Create makes a new, empty file, open for reading and writing. A name that is taken is
	// fs.ErrExist.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenWrite opens a file that exists for reading and writing.
	OpenWrite(name string) (File, error)
	// Remove takes the name of a file, or of an empty directory, away. Open files stay usable.
	Remove(name string) error
	// Rename gives the file a new name, in place of the file that had it, or a directory, with all that it
	// holds, a name that is free. A crash leaves one of the two names, never none.
	Rename(from, to string) error
	// MkdirAll makes a directory and those above it, where they are missing. Once it returned they
	// survive a crash.
	MkdirAll(dir string) error
	// List returns the names in a directory, sorted, without the directory's own.
	List(dir string) ([]string, error)
	// SyncDir makes the names in a directory survive a crash.
	SyncDir(dir string) error
	// Lock takes the file, made if need be, for this process until it is closed or the process
	// ends, however it ends. A lock that another holds is ErrLocked.
	Lock(name string) (io.Closer, error)
	// FreeBytes returns how much may still be written below a directory.
	FreeBytes(dir string) (uint64, error)
}

// File is an open file. It is not safe for concurrent use, but for ReadAt, and for Close beside it: then ReadAt reads, or is fs.ErrClosed.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns how long the file is, what was preallocated included.
	Size() (int64, error)
	// Truncate cuts the file, or extends it with zeros that take no space.
	Truncate(size int64) error
	// Preallocate extends the file with zeros to size and takes the space for it now. Where the
	// file system cannot take space ahead, it does nothing. If it fails, the file may have become
	// longer all the same.
	Preallocate(size int64) error
	// Sync returns once all bytes and the size of the file would survive a crash.
	Sync() error
}
