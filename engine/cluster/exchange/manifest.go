package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"

	"ledgerd/engine/cluster"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

const (
	manifestFormat = 2 // 1 was of programs that kept the files beside the stream

	// A nats-server takes values of 1 MiB by default: two manifests of snapshots of 100 GB.
	partBytes    = 16 << 20
	maxFiles     = 100_000
	maxFileBytes = 1 << 44
)

// Snapshot says what a snapshot is a state of. Its node knows that from its own file.
type Snapshot struct {
	Version   ledger.Version   `json:"version"` // the record it is the state after
	Slot      ledger.Slot      `json:"slot"`
	StateHash ledger.StateHash `json:"state_hash"`
}

// Manifest says which node holds a snapshot, and what its files are.
type Manifest struct {
	Format  int    `json:"format"`
	Ledger  string `json:"ledger"`  // the id of the stream it belongs to
	Node    string `json:"node"`    // that holds it
	Address string `json:"address"` // of that node's operators' listener: http://HOST:PORT, or https://
	Snapshot
	Record []byte `json:"record"` // the record of the version, as the stream holds it
	Files  []File `json:"files"`  // in the order in which they are to appear
}

// File is one file of a snapshot: parts of 16 MiB, the last one of what is left.
type File struct {
	Name  string   `json:"name"`
	Bytes int64    `json:"bytes"`
	Parts []string `json:"parts"` // the SHA-256 of each, in hexadecimal digits
}

// Bytes returns how much the files have together.
func (m *Manifest) Bytes() int64 {
	var sum int64
	for i := range m.Files {
		sum += m.Files[i].Bytes
	}
	return sum
}

// file returns the file of a name, nil if the snapshot has none.
func (m *Manifest) file(name string) *File {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	return nil
}

// isIn reports whether a directory has all of the files, by their sizes.
func (m *Manifest) isIn(disk vfs.FS, dir string) bool {
	for i := range m.Files {
		if size, err := vfs.Size(disk, filepath.Join(dir, m.Files[i].Name)); err != nil || size != m.Files[i].Bytes {
			return false
		}
	}
	return true
}

// fileName is what a file of a snapshot may be called: nothing that leads out of a directory, or is hidden in it.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// isFileName reports whether a whole file of a snapshot may have a name.
func isFileName(name string) bool {
	return fileName.MatchString(name) && !strings.HasSuffix(name, vfs.TemporarySuffix)
}

// isAddress reports whether a peer may be asked at an address: it says no more than a host and a port.
func isAddress(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && address == u.Scheme+"://"+u.Host
}

// partsOf returns how many parts a file has.
func partsOf(bytes int64) int { return int((bytes + partBytes - 1) / partBytes) }

// partSize returns how many bytes a part has.
func (f *File) partSize(i int) int { return int(min(partBytes, f.Bytes-int64(i)*partBytes)) }

// decodeManifests reads what a node offers, and refuses what would harm who follows it.
func decodeManifests(b []byte) (all []*Manifest, err error) {
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	for _, m := range all {
		if m == nil {
			return nil, errors.New("a manifest is missing")
		}
		if err := m.check(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (m *Manifest) check() error {
	if m.Format != manifestFormat {
		return fmt.Errorf("%w: a manifest of format %d", cluster.ErrFormat, m.Format)
	}
	if len(m.Files) == 0 || len(m.Files) > maxFiles || m.Version == 0 {
		return fmt.Errorf("a manifest of %d files at version %d", len(m.Files), m.Version)
	}
	if !isAddress(m.Address) {
		return fmt.Errorf("a manifest names a node at %.200q", m.Address)
	}
	names := make(map[string]bool)
	for i := range m.Files {
		f := &m.Files[i]
		switch {
		case !isFileName(f.Name) || names[f.Name]:
			return fmt.Errorf("a manifest names a file %.200q", f.Name)
		case f.Bytes <= 0 || f.Bytes > maxFileBytes || len(f.Parts) != partsOf(f.Bytes):
			return fmt.Errorf("a manifest says that %s has %d bytes in %d parts", f.Name, f.Bytes, len(f.Parts))
		}
		names[f.Name] = true
	}
	record, err := codec.DecodeRecord(m.Record)
	if err != nil {
		return fmt.Errorf("a manifest's record: %w", err)
	}
	if record.Version != m.Version || record.StateHash != m.StateHash {
		return fmt.Errorf("a manifest of version %d, state hash %s, holds the record of version %d, state hash %s",
			m.Version, m.StateHash, record.Version, record.StateHash)
	}
	return nil
}
