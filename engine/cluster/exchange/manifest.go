package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ledgerd/engine/cluster"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

const (
	manifestFormat = 1
	manifestStart  = "manifest-" // and the version in 20 digits

	partBytes        = 8 << 20
	maxManifestBytes = 16 << 20
	maxFiles         = 100_000
	maxFileBytes     = 1 << 44
)

// Snapshot says what a snapshot is a state of. Its node knows that from its own file.
type Snapshot struct {
	Version   ledger.Version   `json:"version"` // the record it is the state after
	Slot      ledger.Slot      `json:"slot"`
	Blockhash string           `json:"blockhash"`
	Seq       ledger.Seq       `json:"seq"` // of the newest update up to and including the record
	StateHash ledger.StateHash `json:"state_hash"`
	Taken     time.Time        `json:"taken"`
}

// Manifest names the parts of a snapshot that is offered.
type Manifest struct {
	Format int    `json:"format"`
	Ledger string `json:"ledger"` // the id of the stream it belongs to
	Node   string `json:"node"`   // that made it
	Snapshot
	Record []byte `json:"record"` // the record of the version, as the stream holds it
	Facts  []byte `json:"facts,omitempty"`
	Files  []File `json:"files"` // in the order in which they are to appear
}

// File is one file of a snapshot: parts of 8 MiB, the last one of what is left.
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

// fileName is what a file of a snapshot may be called: nothing that leads out of a directory, or is hidden in it.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$`)

// partsOf returns how many parts a file has.
func partsOf(bytes int64) int { return int((bytes + partBytes - 1) / partBytes) }

// partSize returns how many bytes a part has.
func (f *File) partSize(i int) int { return int(min(partBytes, f.Bytes-int64(i)*partBytes)) }

// object returns the name of a part in the object store. It holds the hash: what has the same name is the same.
func (f *File) object(i int) string { return fmt.Sprintf("%s/%06d/%s", f.Name, i, f.Parts[i]) }

func manifestName(v ledger.Version) string { return fmt.Sprintf("%s%020d", manifestStart, uint64(v)) }

// manifestVersion is the inverse of manifestName; ok is false for any other name.
func manifestVersion(name string) (v ledger.Version, ok bool) {
	digits, ok := strings.CutPrefix(name, manifestStart)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return ledger.Version(n), err == nil
}

// decodeManifest reads a manifest and refuses what would harm who follows it.
func decodeManifest(b []byte) (*Manifest, error) {
	m := new(Manifest)
	d := json.NewDecoder(bytes.NewReader(b))
	if err := d.Decode(m); err != nil {
		return nil, fmt.Errorf("cannot read a manifest: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("cannot read a manifest: more follows")
	}
	if m.Format != manifestFormat {
		return nil, fmt.Errorf("%w: a manifest of format %d", cluster.ErrFormat, m.Format)
	}
	if len(m.Files) == 0 || len(m.Files) > maxFiles || m.Version == 0 {
		return nil, fmt.Errorf("a manifest of %d files at version %d", len(m.Files), m.Version)
	}
	names := make(map[string]bool)
	for i := range m.Files {
		f := &m.Files[i]
		switch {
		case !fileName.MatchString(f.Name) || strings.HasSuffix(f.Name, fetchSuffix) || names[f.Name]:
			return nil, fmt.Errorf("a manifest names a file %.200q", f.Name)
		case f.Bytes <= 0 || f.Bytes > maxFileBytes || len(f.Parts) != partsOf(f.Bytes):
			return nil, fmt.Errorf("a manifest says that %s has %d bytes in %d parts", f.Name, f.Bytes, len(f.Parts))
		}
		names[f.Name] = true
	}
	record, err := codec.DecodeRecord(m.Record)
	if err != nil {
		return nil, fmt.Errorf("a manifest's record: %w", err)
	}
	if record.Version != m.Version || record.StateHash != m.StateHash {
		return nil, fmt.Errorf("a manifest of version %d, state hash %s, holds the record of version %d, state hash %s",
			m.Version, m.StateHash, record.Version, record.StateHash)
	}
	return m, nil
}
