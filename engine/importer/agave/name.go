package agave

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"ledgerd/engine/ledger"
)

// parseName returns what the name of an archive says: its slot, and whether it is packed.
func parseName(path string) (slot ledger.Slot, packed bool, err error) {
	name := filepath.Base(path)
	if strings.HasPrefix(name, "incremental-snapshot-") {
		return 0, false, errors.New("it is an incremental snapshot, which holds changes alone: import a full one, snapshot-SLOT-HASH.tar.zst")
	}
	rest, named := strings.CutPrefix(name, "snapshot-")
	number, rest, hasHash := strings.Cut(rest, "-")
	hash, ending, _ := strings.Cut(rest, ".")
	if _, hashErr := ledger.ParseHash(hash); !named || !hasHash || hashErr != nil {
		return 0, false, errors.New("its name is not snapshot-SLOT-HASH.tar.zst")
	}
	if slot, err = parseSlot(number); err != nil {
		return 0, false, errors.New("its name is not snapshot-SLOT-HASH.tar.zst")
	}
	switch ending {
	case "tar.zst":
		return slot, true, nil
	case "tar":
		return slot, false, nil
	case "tar.lz4", "tar.bz2", "tar.gz":
		return 0, false, fmt.Errorf("archives packed as .%s are not read: pack it as .tar.zst, or unpack it to .tar", ending)
	}
	return 0, false, errors.New("its name does not end in .tar.zst or .tar")
}

// parseSlot reads a plain decimal.
func parseSlot(s string) (ledger.Slot, error) {
	n, err := parseNumber(s)
	return ledger.Slot(n), err
}

var errNumber = errors.New("not a plain decimal")

func parseNumber(s string) (uint64, error) {
	if s == "" || len(s) > 1 && s[0] == '0' || s[0] == '+' || s[0] == '-' {
		return 0, errNumber
	}
	return strconv.ParseUint(s, 10, 64)
}

// entry is what the path of a file in the archive says it is.
type entry uint8

const (
	otherEntry entry = iota // of no use here
	versionEntry
	manifestEntry
	storageEntry
)

// parseEntry returns what a file is. The manifest has its slot as slot, a storage also its id.
func parseEntry(path string) (e entry, slot ledger.Slot, id uint64, err error) {
	parts := strings.Split(strings.TrimPrefix(path, "./"), "/")
	switch {
	case len(parts) == 1 && parts[0] == "version":
		return versionEntry, 0, 0, nil
	case len(parts) == 2 && parts[0] == "snapshots" && parts[1] == "status_cache":
		return otherEntry, 0, 0, nil
	case len(parts) == 3 && parts[0] == "snapshots" && parts[1] == parts[2]:
		if slot, err = parseSlot(parts[1]); err == nil {
			return manifestEntry, slot, 0, nil
		}
	case len(parts) == 2 && parts[0] == "accounts":
		first, second, _ := strings.Cut(parts[1], ".")
		slot, err = parseSlot(first)
		if err == nil {
			if id, err = parseNumber(second); err == nil {
				return storageEntry, slot, id, nil
			}
		}
	}
	return otherEntry, 0, 0, errors.New("it holds a file that is no part of a snapshot")
}
