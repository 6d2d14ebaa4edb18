package agave

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"ledgerd/engine/ledger"
)

// parseName takes what the name of an archive says: its slots, and whether it is packed.
func (a *Archive) parseName() (err error) {
	rest, isFull := strings.CutPrefix(filepath.Base(a.path), "snapshot-")
	var base string
	if !isFull {
		if rest, a.base.Known = strings.CutPrefix(rest, "incremental-snapshot-"); a.base.Known {
			base, rest, _ = strings.Cut(rest, "-")
			a.base.Value, err = parseNumber[ledger.Slot](base)
		}
	}
	number, rest, _ := strings.Cut(rest, "-")
	hash, ending, _ := strings.Cut(rest, ".")
	slot, slotErr := parseNumber[ledger.Slot](number)
	if _, hashErr := ledger.ParseHash(hash); !isFull && !a.base.Known || err != nil || slotErr != nil || hashErr != nil || a.base.Known && slot <= a.base.Value {
		return errors.New("its name is not snapshot-SLOT-HASH.tar.zst, or incremental-snapshot-SLOT-SLOT-HASH.tar.zst")
	}
	a.slot, a.packed = slot, ending == "tar.zst"
	switch ending {
	case "tar.zst", "tar":
		return nil
	case "tar.lz4", "tar.bz2", "tar.gz":
		return fmt.Errorf("archives packed as .%s are not read: pack it as .tar.zst, or unpack it to .tar", ending)
	}
	return errors.New("its name does not end in .tar.zst or .tar")
}

// parseNumber reads a decimal without leading zeros.
func parseNumber[T ~uint64](s string) (T, error) {
	if len(s) > 1 && s[0] == '0' {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return T(n), err
}

// entry is what the path of a file in the archive says it is.
type entry uint8

const (
	otherEntry entry = iota // of no use here
	versionEntry
	manifestEntry
	storageEntry
)

// parseEntry returns what a file is. The manifest has its slot in id, a storage also its number.
func parseEntry(path string) (e entry, id storageID, err error) {
	parts := strings.Split(strings.TrimPrefix(path, "./"), "/")
	switch {
	case len(parts) == 1 && parts[0] == "version":
		return versionEntry, id, nil
	case len(parts) == 2 && parts[0] == "snapshots" && parts[1] == "status_cache":
		return otherEntry, id, nil
	case len(parts) == 3 && parts[0] == "snapshots" && parts[1] == parts[2]:
		if id.slot, err = parseNumber[ledger.Slot](parts[1]); err == nil {
			return manifestEntry, id, nil
		}
	case len(parts) == 2 && parts[0] == "accounts":
		slot, number, _ := strings.Cut(parts[1], ".")
		var slotErr error
		id.slot, slotErr = parseNumber[ledger.Slot](slot)
		id.number, err = parseNumber[uint64](number)
		if slotErr == nil && err == nil {
			return storageEntry, id, nil
		}
	}
	return otherEntry, id, errors.New("it holds a file that is no part of a snapshot")
}
