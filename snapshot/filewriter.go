package snapshot

import (
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"sync"

	"ledgerd/snapshot/vfs"
)

// syncEveryBytes is how much a file grows between two syncs. The disk would otherwise get all
// of a snapshot at once at the end, and the log's own syncs would wait for it.
const syncEveryBytes = 8 << 20

// fileWriter writes one file under a temporary name. Its append may be called by several
// goroutines at once. After a failed write or sync it never touches the file again, but to
// remove it.
type fileWriter struct {
	fs        vfs.FS
	dir       string
	name      string // that install gives it
	temporary string
	magic     string
	header    []byte
	hash      FileHash // once it is finished

	mu       sync.Mutex
	file     vfs.File
	chunks   []chunk
	end      int64 // where the next chunk goes
	unsynced int64
	err      error // the first failure
}

// createFile begins a file of the given magic under the temporary form of a name.
func createFile(fs vfs.FS, dir, name, magic string) (*fileWriter, error) {
	w := &fileWriter{fs: fs, dir: dir, name: name, temporary: name + vfs.TemporarySuffix, magic: magic, header: appendHeader(nil, magic)}
	path := filepath.Join(dir, w.temporary)
	// One of the same name can only be left over from an attempt that could not remove it.
	_ = fs.Remove(path)
	f, err := fs.Create(path)
	if err != nil {
		return nil, fmt.Errorf("cannot create %s: %w", w.temporary, err)
	}
	w.file = f
	_ = w.writeLocked(w.header) // after a failure every append fails
	return w, nil
}

// append writes a chunk whose frame is stored. It fills in its length and its checksum.
func (w *fileWriter) append(c chunk, stored []byte) error {
	c.stored, c.checksum = uint32(len(stored)), crc32.Checksum(stored, castagnoli)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.writeLocked(stored); err != nil {
		return err
	}
	w.chunks = append(w.chunks, c)
	if w.unsynced >= syncEveryBytes {
		return w.syncLocked()
	}
	return nil
}

// finish writes index and footer, and returns once all of the file would survive a crash.
func (w *fileWriter) finish() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var index []byte
	for i := range w.chunks {
		index = appendEntry(index, &w.chunks[i])
	}
	end, hash := appendFooter(index, w.header, index)
	if err := w.writeLocked(end); err != nil {
		return err
	}
	if err := w.syncLocked(); err != nil {
		return err
	}
	w.hash = hash
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("cannot close %s: %w", w.temporary, err)
	}
	return nil
}

// install gives the finished file its name and returns once the name would survive a crash. After an error that is not
// known, so install removes the name, unless it was there before.
func (w *fileWriter) install() error {
	names, err := w.fs.List(w.dir)
	if err != nil {
		return fmt.Errorf("cannot list the directory of %s: %w", w.temporary, err)
	}
	name := filepath.Join(w.dir, w.name)
	renamed, err := vfs.Install(w.fs, filepath.Join(w.dir, w.temporary), name)
	if err == nil {
		return nil
	}
	if renamed && !slices.Contains(names, w.name) {
		_ = w.fs.Remove(name)
	}
	return fmt.Errorf("cannot rename %s: %w", w.temporary, err)
}

// discard removes the temporary file, if it was not installed. All calls of append must have returned. A file that discard cannot
// remove, the next OpenStore removes.
func (w *fileWriter) discard() {
	w.file.Close() // once more, if it was finished
	_ = w.fs.Remove(filepath.Join(w.dir, w.temporary))
}

func (w *fileWriter) writeLocked(b []byte) error {
	if w.err != nil {
		return w.err
	}
	if _, err := w.file.WriteAt(b, w.end); err != nil {
		w.err = fmt.Errorf("cannot write %d bytes to %s at byte %d: %w", len(b), w.temporary, w.end, err)
		return w.err
	}
	w.end += int64(len(b))
	w.unsynced += int64(len(b))
	return nil
}

func (w *fileWriter) syncLocked() error {
	if w.err != nil {
		return w.err
	}
	if err := w.file.Sync(); err != nil {
		w.err = fmt.Errorf("cannot sync %s: %w", w.temporary, err)
	}
	w.unsynced = 0
	return w.err
}
