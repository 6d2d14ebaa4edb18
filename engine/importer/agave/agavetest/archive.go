// Package agavetest writes snapshot archives for tests: bincode and account records by hand, from the published layouts
// and with nothing of package agave, so that each is checked by the other. It writes wrong archives too.
package agavetest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger"
)

// Record is one account record of a storage.
type Record struct {
	WriteVersion uint64
	Pubkey       ledger.Pubkey
	Lamports     uint64
	RentEpoch    uint64
	Owner        ledger.Pubkey
	Executable   byte
	Data         []byte
	// DataLen is written as the length of the data where it is not 0.
	DataLen uint64
}

// Storage is one account file.
type Storage struct {
	Slot    uint64
	ID      uint64
	Records []Record
	Garbage []byte // behind the used part
	Used    uint64 // what the manifest says is in use; 0: what the records take
}

// Archive is a snapshot archive to be written.
type Archive struct {
	Slot      uint64
	Base      uint64 // of an incremental archive: the slot of the full one; else 0
	Parent    uint64
	Blockhash ledger.Hash
	Height    uint64
	// Capitalization is the sum of what the accounts hold.
	Capitalization uint64
	Storages       []Storage
	VoteAccounts   int // how many there are in each of the stakes

	// Damage, where it is set, changes what the tar will hold: the version, two entries of no interest, the manifest and
	// then the storages. What it leaves without a name is left out.
	Damage func([]File)
}

// File is an entry of the tar. A name that ends in a slash is a directory.
type File struct {
	Name    string
	Content []byte
}

// Bytes returns the tar.
func (a *Archive) Bytes() []byte {
	files := []File{
		{"version", []byte("1.2.0")},
		{"snapshots/", nil},
		{"snapshots/status_cache", make([]byte, 8)},
		{fmt.Sprintf("snapshots/%d/%d", a.Slot, a.Slot), a.Manifest()},
	}
	for _, s := range a.Storages {
		files = append(files, File{fmt.Sprintf("accounts/%d.%d", s.Slot, s.ID), append(s.Bytes(), s.Garbage...)})
	}
	if a.Damage != nil {
		a.Damage(files)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if f.Name == "" {
			continue
		}
		must(w.WriteHeader(&tar.Header{Name: f.Name, Mode: 0o644, Size: int64(len(f.Content))}))
		_, err := w.Write(f.Content)
		must(err)
	}
	must(w.Close())
	return out.Bytes()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Packed returns the tar packed with zstd.
func (a *Archive) Packed() []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	must(err)
	defer z.Close()
	return z.EncodeAll(a.Bytes(), nil)
}

// Write writes the packed archive into a folder and returns its path.
func (a *Archive) Write(dir string) (string, error) {
	path := filepath.Join(dir, a.Name())
	return path, os.WriteFile(path, a.Packed(), 0o644)
}

// Name returns what Agave would call the archive.
func (a *Archive) Name() string {
	kind := "snapshot"
	if a.Base != 0 {
		kind = fmt.Sprintf("incremental-snapshot-%d", a.Base)
	}
	return fmt.Sprintf("%s-%d-%s.tar.zst", kind, a.Slot, ledger.Hash{1, 2, 3})
}

// Bytes returns the records as they lie in the file.
func (s *Storage) Bytes() []byte {
	var b []byte
	for i := range s.Records {
		b = s.Records[i].append(b)
	}
	return b
}

func (r *Record) append(b []byte) []byte {
	b = append(b, make([]byte, -len(b)&7)...)
	n := cmp.Or(r.DataLen, uint64(len(r.Data)))
	return put(b, r.WriteVersion, n, r.Pubkey, r.Lamports, r.RentEpoch, r.Owner, r.Executable, [7]byte{}, [32]byte{}, r.Data)
}

// put appends values in little endian, an int in 8 bytes.
func put(b []byte, values ...any) []byte {
	for _, v := range values {
		if n, ok := v.(int); ok {
			v = uint64(n)
		}
		var err error
		b, err = binary.Append(b, binary.LittleEndian, v)
		must(err)
	}
	return b
}
