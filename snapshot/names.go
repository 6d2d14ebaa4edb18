package snapshot

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// Names hold numbers in 20 digits, so that their order is that of the numbers.
const (
	stateNameStart, stateNameEnd     = "snapshot-", ".state"
	historyNameStart, historyNameEnd = "history-", ".blocks"
	nameDigits                       = 20
	nameHashBytes                    = 8 // of a history file's hash are in its name
)

func stateName(s ledger.Slot, v ledger.Version) string {
	return fmt.Sprintf("%s%020d-%020d%s", stateNameStart, s, v, stateNameEnd)
}

// parseStateName is the inverse of stateName; ok is false for any other name.
func parseStateName(name string) (s ledger.Slot, v ledger.Version, ok bool) {
	first, second, rest := parseNumbers(strings.TrimPrefix(name, stateNameStart))
	s, v = ledger.Slot(first), ledger.Version(second)
	return s, v, rest == stateNameEnd && name == stateName(s, v)
}

// historyName holds a part of the file's hash: a name is only ever taken over by a file of
// the same bytes, so no snapshot loses its history to another's.
func historyName(first, last ledger.Slot, hash FileHash) string {
	return fmt.Sprintf("%s%020d-%020d-%x%s", historyNameStart, first, last, hash[:nameHashBytes], historyNameEnd)
}

// parseHistoryName is the inverse of historyName; ok is false for any other name.
func parseHistoryName(name string) (first, last ledger.Slot, ok bool) {
	a, b, rest := parseNumbers(strings.TrimPrefix(name, historyNameStart))
	first, last = ledger.Slot(a), ledger.Slot(b)
	digits, ended := strings.CutSuffix(strings.TrimPrefix(rest, "-"), historyNameEnd)
	var hash FileHash
	n, err := hex.Decode(hash[:nameHashBytes], []byte(digits[:min(len(digits), 2*nameHashBytes)]))
	ok = ended && err == nil && n == nameHashBytes && name == historyName(first, last, hash)
	return first, last, ok
}

// parseNumbers reads two numbers with a dash between them from the front of s, and returns what
// follows; zeros and nothing if they are not there.
func parseNumbers(s string) (a, b uint64, rest string) {
	const end = 2*nameDigits + 1
	if len(s) < end || s[nameDigits] != '-' {
		return 0, 0, ""
	}
	a, err := strconv.ParseUint(s[:nameDigits], 10, 64)
	if err != nil {
		return 0, 0, ""
	}
	if b, err = strconv.ParseUint(s[nameDigits+1:end], 10, 64); err != nil {
		return 0, 0, ""
	}
	return a, b, s[end:]
}

// isTemporary reports whether the name is of one of our files in the making.
func isTemporary(name string) bool {
	return strings.HasSuffix(name, vfs.TemporarySuffix) &&
		(strings.HasPrefix(name, stateNameStart) || strings.HasPrefix(name, historyNameStart))
}

func trimTemporary(name string) string { return strings.TrimSuffix(name, vfs.TemporarySuffix) }
