package vfstest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"

	"ledgerd/snapshot/vfs"
)

// onEachDisk runs a test on every kind of disk, with an empty directory of it.
func onEachDisk(t *testing.T, test func(t *testing.T, d vfs.FS, dir string)) {
	t.Run("disk", func(t *testing.T) { test(t, vfs.Disk{}, t.TempDir()) })
	t.Run("memory", func(t *testing.T) { test(t, NewMemory(), ".") })
	t.Run("memory, absolute", func(t *testing.T) {
		m := NewMemory()
		must(t, m.MkdirAll("/data"))
		test(t, m, "/data")
	})
	t.Run("faulty", func(t *testing.T) { test(t, NewFaulty(NewMemory(), Plan{}), ".") })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written makes a file of these bytes and leaves it open.
func written(t *testing.T, d vfs.FS, name, text string) vfs.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = f.WriteAt([]byte(text), 0)
	must(t, err)
	return f
}

// content returns the bytes of a file.
func contentOf(t *testing.T, d vfs.FS, name string) string {
	t.Helper()
	f, err := d.Open(name)
	must(t, err)
	defer f.Close()
	size, err := f.Size()
	must(t, err)
	p := make([]byte, size)
	if n, err := f.ReadAt(p, 0); n != len(p) || err != nil && err != io.EOF {
		t.Fatalf("ReadAt of all %d bytes of %s = %d, %v", size, name, n, err)
	}
	return string(p)
}

func TestDisksFailAlike(t *testing.T) {
	onEachDisk(t, func(t *testing.T, d vfs.FS, dir string) {
		in := func(name string) string { return filepath.Join(dir, name) }
		must(t, d.MkdirAll(in("sub")))
		f := written(t, d, in("file"), "bytes")
		reader, err := d.Open(in("file"))
		must(t, err)
		closed := written(t, d, in("closed"), "")
		must(t, closed.Close())
		lock, err := d.Lock(in("lock"))
		must(t, err)
		defer lock.Close()
		_, listed := d.List(in("none"))
		_, listedFile := d.List(in("file"))
		_, free := d.FreeBytes(in("none"))
		_, locked := d.Lock(in("lock"))
		_, lockedNowhere := d.Lock(in("none/lock"))
		_, badRead := f.ReadAt(make([]byte, 1), -1)
		_, badWrite := f.WriteAt([]byte("x"), -1)
		_, readerWrite := reader.WriteAt([]byte("x"), 0)
		_, closedRead := closed.ReadAt(make([]byte, 1), 0)
		_, closedWrite := closed.WriteAt([]byte("x"), 0)
		_, closedSize := closed.Size()
		must(t, reader.Close())

		anyError := errors.New("any error")
		tests := map[string]struct{ err, want error }{
			"create a taken name":          {second(d.Create(in("file"))), fs.ErrExist},
			"create a directory's name":    {second(d.Create(in("sub"))), fs.ErrExist},
			"create in no directory":       {second(d.Create(in("none/file"))), fs.ErrNotExist},
			"create below a file":          {second(d.Create(in("file/file"))), syscall.ENOTDIR},
			"open nothing":                 {second(d.Open(in("none"))), fs.ErrNotExist},
			"open in no directory":         {second(d.Open(in("none/file"))), fs.ErrNotExist},
			"open below a file":            {second(d.Open(in("file/file"))), syscall.ENOTDIR},
			"open nothing for writing":     {second(d.OpenWrite(in("none"))), fs.ErrNotExist},
			"open a directory for writing": {second(d.OpenWrite(in("sub"))), syscall.EISDIR},
			"remove nothing":               {d.Remove(in("none")), fs.ErrNotExist},
			"rename nothing":               {d.Rename(in("none"), in("other")), fs.ErrNotExist},
			"rename to no directory":       {d.Rename(in("file"), in("none/file")), fs.ErrNotExist},
			"rename to a directory":        {d.Rename(in("file"), in("sub")), fs.ErrExist},
			"rename to itself":             {d.Rename(in("file"), in("file")), nil},
			"rename a directory to a file": {d.Rename(in("sub"), in("file")), syscall.ENOTDIR},
			"rename it into itself":        {d.Rename(in("sub"), in("sub/sub")), syscall.EINVAL},
			"rename it to a directory":     {d.Rename(in("sub"), in(".")), fs.ErrExist},
			"remove what holds something":  {d.Remove(in(".")), syscall.ENOTEMPTY},
			"make what is there":           {d.MkdirAll(in("sub")), nil},
			"make a file a directory":      {d.MkdirAll(in("file")), syscall.ENOTDIR},
			"make a directory in a file":   {d.MkdirAll(in("file/sub/sub")), syscall.ENOTDIR},
			"list nothing":                 {listed, fs.ErrNotExist},
			"list a file":                  {listedFile, syscall.ENOTDIR},
			"sync no directory":            {d.SyncDir(in("none")), fs.ErrNotExist},
			"sync a file as a directory":   {d.SyncDir(in("file")), syscall.ENOTDIR},
			"free bytes of nothing":        {free, fs.ErrNotExist},
			"lock twice":                   {locked, vfs.ErrLocked},
			"lock in no directory":         {lockedNowhere, fs.ErrNotExist},
			"read before the beginning":    {badRead, anyError},
			"write before the beginning":   {badWrite, anyError},
			"cut to less than nothing":     {f.Truncate(-1), syscall.EINVAL},
			"preallocate less than none":   {f.Preallocate(-1), syscall.EINVAL},
			"preallocate nothing":          {f.Preallocate(0), nil},
			"write what is only read":      {readerWrite, syscall.EBADF},
			"read a closed file":           {closedRead, fs.ErrClosed},
			"write a closed file":          {closedWrite, fs.ErrClosed},
			"size of a closed file":        {closedSize, anyError},
			"sync a closed file":           {closed.Sync(), fs.ErrClosed},
			"cut a closed file":            {closed.Truncate(1), fs.ErrClosed},
			"preallocate a closed file":    {closed.Preallocate(1), fs.ErrClosed},
			"close a closed file":          {closed.Close(), fs.ErrClosed},
		}
		for name, tt := range tests {
			if tt.want == anyError && tt.err != nil {
				continue
			}
			if !errors.Is(tt.err, tt.want) {
				t.Errorf("%s: err = %v, want %v", name, tt.err, tt.want)
			}
		}
		if got := contentOf(t, d, in("file")); got != "bytes" {
			t.Errorf("after all that failed the file holds %q, want %q", got, "bytes")
		}
	})
}

func second(f vfs.File, err error) error {
	if err == nil {
		f.Close()
	}
	return err
}

func TestReadAtTellsTheEnd(t *testing.T) {
	onEachDisk(t, func(t *testing.T, d vfs.FS, dir string) {
		f := written(t, d, filepath.Join(dir, "file"), "0123456789")
		tests := []struct {
			length int
			off    int64
			want   string
			err    error
		}{
			{4, 0, "0123", nil},
			{10, 0, "0123456789", nil},
			{4, 6, "6789", nil},
			{4, 8, "89", io.EOF},
			{4, 10, "", io.EOF},
			{4, 1 << 40, "", io.EOF},
			{0, 4, "", nil},
			{0, 99, "", nil},
		}
		for _, tt := range tests {
			p := make([]byte, tt.length)
			n, err := f.ReadAt(p, tt.off)
			if string(p[:n]) != tt.want || err != tt.err {
				t.Errorf("ReadAt(%d bytes, %d) = %q, %v, want %q, %v", tt.length, tt.off, p[:n], err, tt.want, tt.err)
			}
		}
	})
}

func TestSizesAndHoles(t *testing.T) {
	onEachDisk(t, func(t *testing.T, d vfs.FS, dir string) {
		name := filepath.Join(dir, "file")
		f := written(t, d, name, "0123456789")
		expect := func(after, want string) {
			t.Helper()
			if got := contentOf(t, d, name); got != want {
				t.Errorf("after %s the file holds %d bytes %q, want %d bytes %q", after, len(got), got, len(want), want)
			}
		}
		zeros := func(n int) string { return string(make([]byte, n)) }
		must(t, f.Truncate(4))
		expect("a cut", "0123")
		must(t, f.Truncate(8))
		expect("a cut and back", "0123"+zeros(4))
		must(t, f.Preallocate(6))
		expect("preallocating less than there is", "0123"+zeros(4))
		must(t, f.Preallocate(12))
		expect("preallocating more", "0123"+zeros(8))
		_, err := f.WriteAt([]byte("end"), 10_000)
		must(t, err)
		expect("a write after the end", "0123"+zeros(9_996)+"end")
		_, err = f.WriteAt(nil, 20_000)
		must(t, err)
		must(t, f.Truncate(5_000))
		must(t, f.Truncate(10_003))
		expect("a cut into a hole and back", "0123"+zeros(9_999))
		must(t, f.Sync())
		expect("a sync", "0123"+zeros(9_999))
	})
}

func TestNames(t *testing.T) {
	onEachDisk(t, func(t *testing.T, d vfs.FS, dir string) {
		in := func(name string) string { return filepath.Join(dir, name) }
		list := func(dir string, want ...string) {
			t.Helper()
			got, err := d.List(in(dir))
			must(t, err)
			if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("List(%q) = %q, want %q", dir, got, want)
			}
		}
		list("")
		must(t, d.MkdirAll(in("x/y/z")))
		for _, name := range []string{"b", "a", "c", "B", "x/y/1"} {
			written(t, d, in(name), "of "+name)
		}
		list("", "B", "a", "b", "c", "x")
		list("x", "y")
		list("x/y", "1", "z")
		list("x/y/z")

		// A file that is open keeps its bytes whatever becomes of its name.
		b, err := d.OpenWrite(in("b"))
		must(t, err)
		defer b.Close()
		must(t, d.Rename(in("a"), in("b")))
		must(t, d.Rename(in("x/y/1"), in("1")))
		must(t, d.Remove(in("c")))
		list("", "1", "B", "b", "x")
		list("x/y", "z")
		for name, want := range map[string]string{"1": "of x/y/1", "b": "of a", "B": "of B"} {
			if got := contentOf(t, d, in(name)); got != want {
				t.Errorf("%s holds %q, want %q", name, got, want)
			}
		}
		p := make([]byte, 4)
		if n, err := b.ReadAt(p, 0); err != nil || string(p[:n]) != "of b" {
			t.Errorf("the replaced file that is still open reads %q, %v, want %q", p[:n], err, "of b")
		}
		_, err = b.WriteAt([]byte("lost"), 0)
		must(t, err)
		if got := contentOf(t, d, in("b")); got != "of a" {
			t.Errorf("after a write to the replaced file its follower holds %q, want %q", got, "of a")
		}
		must(t, d.SyncDir(in("")))
		must(t, d.SyncDir(in("x/y")))
	})
}

func TestLocksAreHeldUntilClosed(t *testing.T) {
	onEachDisk(t, func(t *testing.T, d vfs.FS, dir string) {
		name := filepath.Join(dir, "LOCK")
		first, err := d.Lock(name)
		must(t, err)
		if _, err := d.Lock(name); !errors.Is(err, vfs.ErrLocked) {
			t.Errorf("second Lock: err = %v, want %v", err, vfs.ErrLocked)
		}
		must(t, first.Close())
		again, err := d.Lock(name)
		must(t, err)
		must(t, again.Close())
		if err := first.Close(); err == nil {
			t.Error("closing a lock twice succeeds, want an error")
		}
	})
}

func TestErrorsAreThoseOfPackageOS(t *testing.T) {
	onEachDisk(t, func(t *testing.T, d vfs.FS, dir string) {
		_, err := d.Open(filepath.Join(dir, "none"))
		if path := new(fs.PathError); !errors.As(err, &path) || path.Path != filepath.Join(dir, "none") {
			t.Errorf("Open: err = %#v, want a fs.PathError that names the file", err)
		}
		err = d.Rename(filepath.Join(dir, "none"), filepath.Join(dir, "other"))
		if link := new(os.LinkError); !errors.As(err, &link) {
			t.Errorf("Rename: err = %#v, want an os.LinkError", err)
		}
	})
}
