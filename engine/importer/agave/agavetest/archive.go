// Package agavetest writes snapshot archives for tests: tar, bincode and account records by hand,
// from the published layouts and with nothing of package agave, so that both can be held against
// each other. It writes wrong ones just as well.
package agavetest

import (
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
	Raw      []byte
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
	version := a.Version
	if version == "" {
		version = "1.2.0"
	}
	out := tarFile(nil, "version", []byte(version))
	manifest := func() {
		if a.NoManifest {
			return
		}
		out = tarDir(out, "snapshots/")
		out = tarFile(out, "snapshots/status_cache", []byte{0, 0, 0, 0, 0, 0, 0, 0})
		out = tarDir(out, fmt.Sprintf("snapshots/%d/", a.Slot))
		out = tarFile(out, fmt.Sprintf("snapshots/%d/%d", a.Slot, a.Slot), a.Manifest())
	}
	if !a.AccountsFirst {
		manifest()
	}
	for i := range a.Storages {
		if s := &a.Storages[i]; !s.Missing {
			out = tarFile(out, fmt.Sprintf("accounts/%d.%d", s.Slot, s.ID), append(s.Bytes(), s.Garbage...))
		}
	}
	if a.AccountsFirst {
		manifest()
	}
	return append(out, make([]byte, 1024)...)
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

// Bytes returns the records as they lie in the file, and Used where it ends.
func (s *Storage) Bytes() []byte {
	if s.Raw != nil {
		return append([]byte(nil), s.Raw...)
	}
	var b []byte
	for i := range s.Records {
		b = s.Records[i].append(b)
	}
	return b
}

func (r *Record) append(b []byte) []byte {
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	n := uint64(len(r.Data))
	if r.DataLen != 0 {
		n = r.DataLen
	}
	b = u64(b, r.WriteVersion, n)
	b = append(b, r.Pubkey[:]...)
	b = u64(b, r.Lamports, r.RentEpoch)
	b = append(b, r.Owner[:]...)
	b = append(b, r.Executable, 0, 0, 0, 0, 0, 0, 0)
	b = append(b, make([]byte, 32)...)
	return append(b, r.Data...)
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

func u64(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}
