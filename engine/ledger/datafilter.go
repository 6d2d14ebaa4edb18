package ledger

import (
	"bytes"

	"ledgerd/engine/base58"
)

const (
	// MaxDataParts is how many parts a DataFilter may compare: they are compared with every account that a list examines.
	MaxDataParts = 4
	// MaxPartBytes is how long each of them may be.
	MaxPartBytes = 128
	// maxPartChars is the longest base58 of so many bytes.
	maxPartChars = 175
)

// DataFilter selects accounts by their data. It selects only accounts whose data is known. It is immutable.
type DataFilter struct {
	Size  Opt[uint64] // the length of all data
	Parts []DataPart  // all must match
}

// DataPart is a part of an account's data: the bytes from an offset on.
type DataPart struct {
	Offset uint64
	Bytes  []byte
}

// ParseDataPart returns a part at an offset whose bytes are given in base58. ok is false if the text is not valid base58, or encodes
// no bytes or more than MaxPartBytes.
func ParseDataPart[T string | []byte](offset uint64, text T) (p DataPart, ok bool) {
	if len(text) > maxPartChars {
		return p, false
	}
	b, err := base58.Decode(string(text))
	return DataPart{offset, b}, err == nil && len(b) > 0 && len(b) <= MaxPartBytes
}

// Match reports whether the filter selects an account.
func (f *DataFilter) Match(a *Account) bool {
	return a.Known&FieldData != 0 && f.MatchData(a.Data)
}

// MatchData reports whether the filter selects an account with this data.
func (f *DataFilter) MatchData(d Data) bool {
	data, size := d.Bytes(), uint64(d.Len())
	if f.Size.Known && f.Size.Value != size {
		return false
	}
	for _, p := range f.Parts {
		if p.Offset > size || !bytes.HasPrefix(data[p.Offset:], p.Bytes) {
			return false
		}
	}
	return true
}
