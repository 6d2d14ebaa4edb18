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
	// Used is what the manifest says is in use; 0: what the records take, -1: nothing.
	Used     int64
	Missing  bool // it is not in the archive, but in the manifest
	Unlisted bool // it is in the archive, but not in the manifest
}

// Archive is a snapshot archive to be written.
type Archive struct {
	Slot      uint64
	Parent    uint64
	Blockhash ledger.Hash
	Height    uint64
	// Capitalization is the sum of what the accounts hold.
	Capitalization uint64
	Storages       []Storage

	Version       string // "1.2.0" if empty
	AccountsFirst bool   // storages come before the manifest
	NoManifest    bool
	ManifestSlot  uint64 // the slot the bank says it is at; 0: Slot
	NoExtra       bool   // the fields behind the storages are left off, as old writers do
	Incremental   bool
	HashUnknown   bool // the last blockhash is not among the recent ones
	VoteAccounts  int  // how many there are in each of the stakes
}

// Bytes returns the tar.
func (a *Archive) Bytes() []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(name string, content []byte) {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))} // a name that ends in a slash is a directory
		must(w.WriteHeader(h))
		_, err := w.Write(content)
		must(err)
	}
	manifest := func() {
		if a.NoManifest {
			return
		}
		add("snapshots/", nil)
		add("snapshots/status_cache", make([]byte, 8))
		add(fmt.Sprintf("snapshots/%d/%d", a.Slot, a.Slot), a.Manifest())
	}
	add("version", []byte(cmp.Or(a.Version, "1.2.0")))
	if !a.AccountsFirst {
		manifest()
	}
	for i := range a.Storages {
		if s := &a.Storages[i]; !s.Missing {
			add(fmt.Sprintf("accounts/%d.%d", s.Slot, s.ID), append(s.Bytes(), s.Garbage...))
		}
	}
	if a.AccountsFirst {
		manifest()
	}
	must(w.Close())
	return out.Bytes()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Write writes the archive into a folder, packed with zstd, and returns its path.
func (a *Archive) Write(dir string) (string, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return "", err
	}
	defer z.Close()
	path := filepath.Join(dir, a.Name())
	return path, os.WriteFile(path, z.EncodeAll(a.Bytes(), nil), 0o644)
}

// Name returns what Agave would call the archive.
func (a *Archive) Name() string {
	return fmt.Sprintf("snapshot-%d-%s.tar.zst", a.Slot, ledger.Hash{1, 2, 3})
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

func (s *Storage) used() uint64 {
	switch {
	case s.Used < 0:
		return 0
	case s.Used > 0:
		return uint64(s.Used)
	}
	return uint64(len(s.Bytes()))
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
