package agave

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/unpack"
)

const (
	// maxWindowBytes bounds how far back zstd may look: the window of its highest level with
	// --long. Agave packs with its lowest levels.
	maxWindowBytes = 128 << 20
	// chunkRecords is how many records one chunk holds at most.
	chunkRecords = 4096
	// readBytes is how much of the file is read at once.
	readBytes = 1 << 20
	// snapshotVersion is the only one Agave has written since 2020.
	snapshotVersion = "1.2.0"
)

// Archive is a snapshot archive. Read may be called once; the other methods by any goroutine.
type Archive struct {
	path   string
	slot   ledger.Slot
	packed bool
	size   int64
	read   atomic.Int64
}

// Chunk is some of the records of one storage, in their order.
type Chunk struct {
	State ledger.BaseState // at the storage's slot; deletions are writes of 0 lamports
	// WriteVersions are those of the accounts, which decide between records of one slot.
	WriteVersions []uint64
}

// Open looks at the name of an archive and whether it can be opened. Errors are one line.
func Open(path string) (*Archive, error) {
	slot, packed, err := parseName(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read archive %s: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read archive %s: %w", path, unpack.Reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read archive %s: %w", path, unpack.Reason(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot read archive %s: it is not a file", path)
	}
	return &Archive{path: path, slot: slot, packed: packed, size: info.Size()}, nil
}

// Progress returns how many bytes of how many were read.
func (a *Archive) Progress() (read, size int64) { return a.read.Load(), a.size }

// Read calls emit for every chunk in the order of the archive, and returns the bank. A chunk is
// good until emit returns. It ends with the first error, that of emit or of ctx as they are. Its own say of
// the archive what is wrong with "it", in one line.
func (a *Archive) Read(ctx context.Context, emit func(*Chunk) error) (*Bank, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("it cannot be opened: %w", unpack.Reason(err))
	}
	defer f.Close()
	p := &pass{emit: emit, named: a.slot, vec: newVecReader()}
	err = a.unpack(ctx, f, p.run)
	switch {
	case p.failed != nil:
		return nil, p.failed
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return &p.manifest.bank, nil
}

// unpack calls use with what is in the file. Once use is through the rest must be whole too.
func (a *Archive) unpack(ctx context.Context, f io.Reader, use func(io.Reader) error) error {
	in := io.Reader(bufio.NewReaderSize(&counted{ctx, f, &a.read}, readBytes))
	if a.packed {
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(maxWindowBytes), zstd.WithDecoderLowmem(true))
		if err != nil {
			return unpack.Error{Packing: "zstd", Err: err}
		}
		defer z.Close()
		in = unpack.Reader{Packing: "zstd", R: z}
	}
	if err := use(in); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

// counted counts what is read, and ends with its context.
type counted struct {
	ctx  context.Context
	r    io.Reader
	read *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.read.Add(int64(n))
	return n, err
}

// pass is one reading of an archive.
type pass struct {
	emit  func(*Chunk) error
	named ledger.Slot
	vec   *vecReader

	versioned bool
	manifest  *manifest // nil before it came
	chunk     Chunk
	found     int   // storages
	failed    error // what emit returned
}

// run reads a tar to its end, and checks that nothing is missing.
func (p *pass) run(in io.Reader) error {
	t := tar.NewReader(in)
	for {
		h, err := t.Next()
		switch {
		case err == io.EOF:
			return p.complete()
		case err != nil:
			return fmt.Errorf("its tar is damaged: %w", cut(err))
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse:
			return fmt.Errorf("%q in it is no file", printable(h.Name))
		}
		if err := p.file(h, t); err != nil {
			return fmt.Errorf("%s in it: %w", printable(h.Name), err)
		}
	}
}

// file reads one file of the tar.
func (p *pass) file(h *tar.Header, in io.Reader) error {
	e, slot, id, err := parseEntry(h.Name)
	switch {
	case err != nil:
		return err
	case e == versionEntry:
		return p.version(in)
	case e == manifestEntry && p.manifest != nil:
		return errors.New("it is a second manifest")
	case e == manifestEntry && !p.versioned:
		return errors.New("the version of the archive does not come before it")
	case e == manifestEntry:
		p.manifest, err = readManifest(in, h.Size, p.named)
		if err == nil && slot != p.named {
			err = fmt.Errorf("it is the manifest of slot %d, the archive is named after %d", slot, p.named)
		}
		return err
	case e == storageEntry && p.manifest == nil:
		return errors.New("the manifest does not come before it, so nobody knows how much of it is in use")
	case e == storageEntry:
		return p.storage(slot, id, uint64(h.Size), in)
	}
	return nil
}

func (p *pass) version(in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, 64))
	if err != nil {
		return cut(err)
	}
	if got := strings.TrimSpace(string(text)); got != snapshotVersion {
		return fmt.Errorf("it is of version %q, and only %s is known", printable(got), snapshotVersion)
	}
	p.versioned = true
	return nil
}

// storage emits the records of one account file.
func (p *pass) storage(slot ledger.Slot, id, size uint64, in io.Reader) error {
	s := p.manifest.find(slot, id)
	switch {
	case s == nil:
		return errors.New("the manifest does not list it")
	case s.seen:
		return errors.New("it comes twice")
	case s.used > size:
		return fmt.Errorf("it has %d bytes, and the manifest says that %d are in use", size, s.used)
	}
	s.seen = true
	p.found++
	p.chunk.State.Slot = slot
	err := p.vec.read(in, s.used, func(w *ledger.AccountWrite, version uint64) error {
		p.chunk.State.Accounts = append(p.chunk.State.Accounts, *w)
		p.chunk.WriteVersions = append(p.chunk.WriteVersions, version)
		if len(p.chunk.WriteVersions) < chunkRecords {
			return nil
		}
		return p.flush()
	})
	if err == nil {
		err = p.flush()
	}
	return err
}

func (p *pass) flush() error {
	if len(p.chunk.WriteVersions) == 0 {
		return nil
	}
	p.failed = p.emit(&p.chunk)
	clear(p.chunk.State.Accounts) // nothing they point at is kept
	p.chunk.State.Accounts = p.chunk.State.Accounts[:0]
	p.chunk.WriteVersions = p.chunk.WriteVersions[:0]
	return p.failed
}

// complete reports what the archive should hold and does not.
func (p *pass) complete() error {
	if p.manifest == nil {
		return errors.New("it holds no manifest, snapshots/SLOT/SLOT")
	}
	if missing := len(p.manifest.storages) - p.found; missing > 0 {
		for i := range p.manifest.storages {
			if s := &p.manifest.storages[i]; !s.seen {
				return fmt.Errorf("accounts/%d.%d and %d more of the storages that its manifest lists are missing", s.slot, s.id, missing-1)
			}
		}
	}
	return nil
}

// printable makes a name of the archive fit for one line.
func printable(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
