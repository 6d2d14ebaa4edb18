package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ledgerd/cmd/internal/call"
	"ledgerd/engine/datadir"
	clientlib "ledgerd/httpd/client"
	"ledgerd/snapshot/vfs"
)

type backupCommand struct {
	URL    string `help:"The operators' listener of the node: http://HOST:PORT." default:"http://127.0.0.1:8081" name:"url" env:"-"`
	Output string `help:"The data directory to make. It must not exist, and appears when it is complete and verified." required:"" placeholder:"DIR"`
	call.Flags
	quietFlag
	silence time.Duration // askOperators'
}

// Validate checks what the flags' types cannot.
func (c *backupCommand) Validate() error {
	if c.Output == "" {
		return errors.New("--output must name what is to be made")
	}
	if strings.HasSuffix(c.Output, ".tar.zst") { // which older programs made an archive of
		return errors.New("--output must name a directory: tar --zstd makes an archive of it")
	}
	c.Output = filepath.Clean(c.Output) // of a slash at its end, or that would be the name
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
	if err := c.fetch(ctx, s, client, dir); err != nil {
		return fmt.Errorf("cannot fetch the backup: %w", err)
	}
	for _, verify := range []func() error{
		func() error { return checkDataDir(dir) },
		func() error {
			_, err := datadir.View(dir)
			return err
		},
		func() error { return (&snapshotVerifyCommand{DataDir: dir, quietFlag: c.quietFlag}).Run(ctx, s) },
		func() error { return (&logVerifyCommand{DataDir: dir, quietFlag: c.quietFlag}).Run(ctx, s) },
	} {
		if err := verify(); err != nil {
			return fmt.Errorf("the backup is of no use: %w", err)
		}
	}
	if _, err := vfs.Install(vfs.Disk{}, dir, c.Output); err != nil {
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

// fetch makes a data directory of what the node sends.
func (c *backupCommand) fetch(ctx context.Context, s *streams, client *http.Client, dir string) error {
	response, err := askOperators(ctx, client, c.URL, "/backup", c.Asked(c.URL), c.silence)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.ContentLength < 0 {
		return fmt.Errorf("%s does not say how long its backup is", c.Asked(c.URL))
	}
	meter := &meter{phase: "fetching the backup", total: uint64(response.ContentLength)}
	defer c.show(s, meter.progress)()
	body := io.TeeReader(response.Body, meter)
	if err := extract(tar.NewReader(body), dir, response.ContentLength); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body) // what the connection lost is an error here
	return err
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
