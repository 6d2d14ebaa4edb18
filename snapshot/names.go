package snapshot

import (
	"encoding/binary"
	"fmt"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Names hold numbers in 20 digits, so that the order of the names is that of the numbers.
const (
	statePrefix, stateSuffix     = "snapshot-", ".state"
	historyPrefix, historySuffix = "history-", ".blocks"
	runPrefix                    = "run-" // the rest of the name of a run is as that of a history file
)

func stateName(s ledger.Slot, v ledger.Version) string {
	return fmt.Sprintf("%s%020d-%020d%s", statePrefix, s, v, stateSuffix)
}

// parseStateName is the inverse of stateName; ok is false for any other name.
func parseStateName(name string) (s ledger.Slot, v ledger.Version, ok bool) {
	_, err := fmt.Sscanf(name, statePrefix+"%d-%d"+stateSuffix, &s, &v)
	return s, v, err == nil && name == stateName(s, v)
}

// blocksName returns the name of a history file or of a run, by the prefix. It holds the first 8 bytes of the file's hash. So a file replaces only
// one of the same bytes, and no snapshot loses its history to another's.
func blocksName(prefix string, first, last ledger.Slot, hash FileHash) string {
	return fmt.Sprintf("%s%020d-%020d-%x%s", prefix, first, last, hash[:8], historySuffix)
}

// parseBlocksName is the inverse of blocksName; ok is false for any other name.
func parseBlocksName(prefix, name string) (first, last ledger.Slot, ok bool) {
	var start uint64
	var hash FileHash
	_, err := fmt.Sscanf(name, prefix+"%d-%d-%x"+historySuffix, &first, &last, &start)
	binary.BigEndian.PutUint64(hash[:], start)
	return first, last, err == nil && name == blocksName(prefix, first, last, hash)
}

// IsFile reports whether a name is of a snapshot or of a history file.
func IsFile(name string) bool {
	_, _, isState := parseStateName(name)
	_, _, isHistory := parseBlocksName(historyPrefix, name)
	return isState || isHistory
}

// isTemporary reports whether the name is of one of our files that is not finished.
func isTemporary(name string) bool {
	return strings.HasSuffix(name, vfs.TemporarySuffix) &&
		(strings.HasPrefix(name, statePrefix) || strings.HasPrefix(name, historyPrefix) || strings.HasPrefix(name, runPrefix))
}
