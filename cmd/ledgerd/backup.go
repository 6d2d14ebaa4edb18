package main

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"ledgerd/cmd/internal/call"
	"ledgerd/engine/datadir"
	clientlib "ledgerd/httpd/client"
	"ledgerd/snapshot/vfs"
)

type backupCommand struct {
	URL    string `help:"The operators' listener of the node: http://HOST:PORT." default:"http://127.0.0.1:8081" name:"url" env:"-"`
	Output string `help:"What to make: a data directory, or an archive of one if the name ends in .tar.zst. It must not exist, and appears when it is complete and verified." required:"" placeholder:"DIR|FILE.tar.zst"`
	call.Flags
	quietFlag
}

const archiveSuffix = ".tar.zst"

// Validate checks what the flags' types cannot.
func (c *backupCommand) Validate() error {
	if c.Output == "" {
		return errors.New("--output must name what is to be made")
	}
	c.Output = filepath.Clean(c.Output) // of a slash at its end, or that would be the name
	switch ext := filepath.Ext(c.Output); {
	case ext == ".tar", ext == ".tgz", ext == ".gz", ext == ".zst" && !strings.HasSuffix(c.Output, archiveSuffix):
		return fmt.Errorf("--output must name a directory, or a file that ends in %s", archiveSuffix)
	}
	_, err := clientlib.ParseAddress(c.URL)
	return err
}

// Run makes the backup under a temporary name, verifies node.json as a start does and the rest as `snapshot verify` and `log verify`
// do, and gives it its name.
func (c *backupCommand) Run(ctx context.Context, s *streams) error {
	if err := c.isFree(); err != nil {
		return &usageError{err}
	}
	client, err := c.Client()
	if err != nil {
		return &usageError{err}
	}
	temporary, err := os.MkdirTemp(filepath.Dir(c.Output), filepath.Base(c.Output)+".unfinished-")
	if err != nil {
		return fmt.Errorf("cannot make a backup: %w", err)
	}
	defer os.RemoveAll(temporary) // there is nothing where it got its name
	dir := filepath.Join(temporary, "data")
	bytes, err := c.fetch(ctx, s, client, dir)
	if err != nil {
		return fmt.Errorf("cannot fetch the backup: %w", err)
	}
	for _, verify := range []func() error{
		func() error { return checkDataDir(dir) },
		func() error { return datadir.Check(dir) },
		func() error { return (&snapshotVerifyCommand{DataDir: dir, quietFlag: c.quietFlag}).Run(ctx, s) },
		func() error { return (&logVerifyCommand{DataDir: dir, quietFlag: c.quietFlag}).Run(ctx, s) },
	} {
		if err := verify(); err != nil {
			return fmt.Errorf("the backup is of no use: %w", err)
		}
	}
	made := dir
	if strings.HasSuffix(c.Output, archiveSuffix) {
		made = filepath.Join(temporary, "archive")
		meter := &meter{phase: "writing the archive", total: 2 * bytes} // it is read back
		stop := c.show(s, meter.progress)
		err := pack(ctx, dir, made, meter)
		stop()
		if err != nil {
			return fmt.Errorf("cannot write the archive: %w", err)
		}
	}
	if err := c.isFree(); err != nil {
		return err
	}
	if _, err := vfs.Install(vfs.Disk{}, made, c.Output); err != nil {
		return fmt.Errorf("cannot finish the backup: %w", err)
	}
	fmt.Fprintf(s.out, "backed up to %s\n", c.Output)
	return nil
}

func (c *backupCommand) isFree() error {
	if _, err := os.Lstat(c.Output); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s exists: a backup takes a new name", c.Output)
	}
	return nil
}

// fetch makes a data directory of what the node sends, and returns how much that is.
func (c *backupCommand) fetch(ctx context.Context, s *streams, client *http.Client, dir string) (bytes uint64, err error) {
	response, err := askOperators(ctx, client, c.URL, "/backup", c.Asked(c.URL))
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.ContentLength < 0 {
		return 0, fmt.Errorf("%s does not say how long its backup is", c.Asked(c.URL))
	}
	meter := &meter{phase: "fetching the backup", total: uint64(response.ContentLength)}
	defer c.show(s, meter.progress)()
	body := io.TeeReader(response.Body, meter)
	if err = extract(tar.NewReader(body), dir, response.ContentLength); err == nil {
		_, err = io.Copy(io.Discard, body) // what the connection lost is an error here
	}
	if err != nil {
		return 0, err
	}
	return meter.total, nil
}

// extract writes the files of an archive below a directory, and syncs all of it. It refuses what is no file of a backup, and files that
// are together longer than the archive: a sparse file may be a thousand times as long as what describes it.
func extract(archive *tar.Reader, dir string, archiveBytes int64) error {
	left := archiveBytes
	disk := vfs.Disk{}
	for _, d := range []string{"snapshots", "log"} {
		if err := disk.MkdirAll(filepath.Join(dir, d)); err != nil {
			return err
		}
	}
	for {
		header, err := archive.Next()
		if err == io.EOF {
			return errors.Join(disk.SyncDir(filepath.Join(dir, "snapshots")), disk.SyncDir(filepath.Join(dir, "log")), disk.SyncDir(dir))
		}
		if err != nil {
			return err
		}
		if !datadir.IsInBackup(header.Name) || header.Typeflag != tar.TypeReg {
			return fmt.Errorf("%q is no file of a data directory", header.Name)
		}
		if left -= header.Size; left < 0 {
			return fmt.Errorf("its files are more than the %d bytes that were announced", archiveBytes)
		}
		f, err := disk.Create(filepath.Join(dir, header.Name))
		if err != nil {
			return err
		}
		_, err = io.Copy(io.NewOffsetWriter(f, 0), archive)
		if err == nil {
			err = f.Sync()
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
}

// untilDone refuses what is written once its context has ended.
type untilDone struct{ context.Context }

func (u untilDone) Write(p []byte) (int, error) { return len(p), u.Err() }

// pack writes an archive of a directory, syncs it, and reads it back, by the checksum that the encoder made of what it was given.
func pack(ctx context.Context, dir, archive string, meter *meter) (err error) {
	f, err := os.OpenFile(archive, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	compressed, err := zstd.NewWriter(f)
	if err != nil {
		return err
	}
	plain := tar.NewWriter(io.MultiWriter(untilDone{ctx}, compressed, meter))
	err = errors.Join(plain.AddFS(os.DirFS(dir)), plain.Close(), compressed.Close(), f.Sync())
	if err == nil {
		err = readBack(ctx, f, meter)
	}
	return cmp.Or(ctx.Err(), err)
}

// readBack returns an error unless a compressed file, from its beginning, holds what its checksum is of.
func readBack(ctx context.Context, f io.ReadSeeker, meter *meter) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	compressed, err := zstd.NewReader(f)
	if err != nil {
		return err
	}
	defer compressed.Close()
	_, err = io.Copy(io.MultiWriter(untilDone{ctx}, meter), compressed)
	return err
}
