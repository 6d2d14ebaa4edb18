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
