package agave

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/importer"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source/unpack"
)

const (
	// maxWindowBytes bounds how far back zstd may look: the window of its highest level with
	// --long. Agave packs with its lowest levels.
	maxWindowBytes = 128 << 20
	// readBytes is how much of the file is read at once.
	readBytes = 1 << 20
	// snapshotVersion is the only one Agave has written since 2020.
	snapshotVersion = "1.2.0"
)

// Archive is a snapshot archive. Read may be called once; the other methods by any goroutine.
type Archive struct {
	path   string
	slot   ledger.Slot
	base   ledger.Opt[ledger.Slot] // of the full archive that an incremental one holds the changes since
	packed bool
	size   int64
	read   atomic.Int64
	// Data are the programs whose accounts are told with their data; nil: none.
	Data *ledger.DataPrograms
}

// Open looks at the name of an archive and whether it can be opened. Errors are one line.
func Open(path string) (*Archive, error) {
	a := &Archive{path: path}
	if err := a.open(); err != nil {
		return nil, fmt.Errorf("cannot read archive %s: %w", path, unpack.Reason(err))
	}
	return a, nil
}

func (a *Archive) open() error {
	if err := a.parseName(); err != nil {
		return err
	}
	info, err := os.Stat(a.path) // opening a pipe would wait for its writer
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	a.size = info.Size()
	return f.Close()
}

// Follows returns an error unless the archive is an incremental one of the changes since full, which is a full one, or with a nil full
// is a full one itself.
func (a *Archive) Follows(full *Archive) error {
	switch {
	case full == nil && a.base.Known:
		return fmt.Errorf("cannot read archive %s: it is incremental, and holds the changes since slot %d alone: it goes beside the full one of that slot", a.path, a.base.Value)
	case full != nil && !a.base.Known:
		return fmt.Errorf("cannot read archive %s: it is a full one, and no incremental one", a.path)
	case full != nil && a.base.Value != full.slot:
		return fmt.Errorf("cannot read archive %s: it holds the changes since slot %d, and the full one is of slot %d", a.path, a.base.Value, full.slot)
	}
	return nil
}

// Path returns the path that the archive was opened by.
func (a *Archive) Path() string { return a.path }

// Progress returns how many bytes of how many were read.
func (a *Archive) Progress() (read, size int64) { return a.read.Load(), a.size }

// Read calls add for every record in the order of the archive, and returns the point of its bank. The write is good until
// add returns; one of 0 lamports is a deletion. Read ends with the first error: that of add or of ctx as it is, else what
// is wrong with the archive, in one line about "it".
func (a *Archive) Read(ctx context.Context, add func(slot ledger.Slot, version uint64, w *ledger.AccountWrite) error) (importer.Point, error) {
	f, err := os.Open(a.path)
	if err != nil {
		return importer.Point{}, fmt.Errorf("it cannot be opened: %w", unpack.Reason(err))
	}
	defer f.Close()
	p := &pass{named: a.slot, base: a.base, vec: vecReader{held: a.Data}}
	var failed error
	p.add = func(slot ledger.Slot, version uint64, w *ledger.AccountWrite) error {
		failed = add(slot, version, w)
		return failed
	}
	err = a.unpack(ctx, f, p.run)
	if err := cmp.Or(failed, ctx.Err(), err); err != nil {
		return importer.Point{}, err
	}
	return p.manifest.bank, nil
}

// unpack calls use with what is in the file. Once use is through the rest must be whole too.
func (a *Archive) unpack(ctx context.Context, f io.Reader, use func(io.Reader) error) error {
	in := io.Reader(bufio.NewReaderSize(unpack.Counted{Ctx: ctx, R: f, Bytes: &a.read}, readBytes))
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

// pass is one reading of an archive.
type pass struct {
	add   func(ledger.Slot, uint64, *ledger.AccountWrite) error
	named ledger.Slot
	base  ledger.Opt[ledger.Slot]
	vec   vecReader

	versioned bool
	manifest  *manifest // nil before it came
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
			return fmt.Errorf("%+.100q in it is no file", h.Name)
		}
		if err := p.file(h, t); err != nil {
			return fmt.Errorf("%+.100q in it: %w", h.Name, err)
		}
	}
}

var errNoPart = errors.New("it holds a file that is no part of a snapshot")

// file reads one file of the tar. Its path says what it is.
func (p *pass) file(h *tar.Header, in io.Reader) error {
	switch parts := strings.Split(strings.TrimPrefix(h.Name, "./"), "/"); {
	case len(parts) == 1 && parts[0] == "version":
		return p.version(in)
	case len(parts) == 2 && parts[0] == "snapshots" && parts[1] == "status_cache":
		return nil
	case len(parts) == 3 && parts[0] == "snapshots" && parts[1] == parts[2]:
		return p.bank(parts[1], h.Size, in)
	case len(parts) == 2 && parts[0] == "accounts":
		return p.storage(parts[1], uint64(h.Size), in)
	}
	return errNoPart
}

// bank reads the manifest of a slot.
func (p *pass) bank(name string, size int64, in io.Reader) error {
	slot, err := parseNumber[ledger.Slot](name)
	switch {
	case err != nil:
		return errNoPart
	case p.manifest != nil:
		return errors.New("it is a second manifest")
	case !p.versioned:
		return errors.New("the version of the archive does not come before it")
	}
	p.manifest, err = readManifest(in, size, p.named, p.base)
	if err == nil && slot != p.named {
		err = fmt.Errorf("it is the manifest of slot %d, the archive is named after %d", slot, p.named)
	}
	return err
}

func (p *pass) version(in io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(in, 64))
	if err != nil {
		return cut(err)
	}
	if got := strings.TrimSpace(string(text)); got != snapshotVersion {
		return fmt.Errorf("it is of version %+q, and only %s is known", got, snapshotVersion)
	}
	p.versioned = true
	return nil
}

// storage adds the records of one account file, SLOT.NUMBER.
func (p *pass) storage(name string, size uint64, in io.Reader) error {
	slotText, numberText, _ := strings.Cut(name, ".")
	slot, slotErr := parseNumber[ledger.Slot](slotText)
	number, err := parseNumber[uint64](numberText)
	switch {
	case slotErr != nil || err != nil:
		return errNoPart
	case p.manifest == nil:
		return errors.New("the manifest does not come before it, so nobody knows how much of it is in use")
	}
	listed, ok := p.manifest.storages[slot]
	switch {
	case !ok || listed.number != number:
		return errors.New("the manifest does not list it, or it came before")
	case listed.used > size:
		return fmt.Errorf("it has %d bytes, and the manifest says that %d are in use", size, listed.used)
	}
	delete(p.manifest.storages, slot)
	return p.vec.read(in, listed.used, func(w *ledger.AccountWrite, version uint64) error { return p.add(slot, version, w) })
}

// complete reports what the archive should hold and does not.
func (p *pass) complete() error {
	if p.manifest == nil {
		return errors.New("it holds no manifest, snapshots/SLOT/SLOT")
	}
	for slot, s := range p.manifest.storages {
		return fmt.Errorf("accounts/%d.%d and %d more of the storages that its manifest lists are missing", slot, s.number, len(p.manifest.storages)-1)
	}
	return nil
}
