package ledger

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"
)

// Data is the data of an account and its SHA-256. It never changes, so a write, the stored account, updates and answers share it.
// Equal data is equal by ==. The zero value is empty data; FieldData alone says whether data is known.
type Data struct {
	held string // hash and bytes, in one piece of memory without pointers, which the garbage collector does not scan
}

var hashOfNothing = sha256.Sum256(nil)

// dataBytes is what data takes in memory besides its bytes.
const dataBytes = 72

// MaxDataBytes is the size of the largest account that a ledger allows.
const MaxDataBytes = 10 << 20

// NewData returns data with a copy of b.
func NewData(b []byte) Data {
	if len(b) == 0 {
		return Data{}
	}
	hash := sha256.Sum256(b)
	var held strings.Builder
	held.Grow(len(hash) + len(b))
	held.Write(hash[:])
	held.Write(b)
	return Data{held.String()}
}

// Bytes returns the bytes, which must not be changed.
func (d Data) Bytes() []byte {
	if d.held == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(d.held), len(d.held))[sha256.Size:]
}

// Len returns how many bytes there are.
func (d Data) Len() int { return len(d.Bytes()) }

// Hash returns the SHA-256 of the bytes.
func (d Data) Hash() (hash [sha256.Size]byte) {
	if d.held == "" {
		return hashOfNothing
	}
	copy(hash[:], d.held)
	return hash
}

// DataBefore returns Update.DataBefore of a change; before is nil if nothing was known of the account.
func DataBefore(before, after *Account) Opt[Data] {
	if before == nil || before.Known&FieldData == 0 || after.Known&FieldData != 0 && before.Data == after.Data {
		return Opt[Data]{}
	}
	return Some(before.Data)
}

// SizeBytes estimates what the data takes in memory.
func (d Data) SizeBytes() int {
	if d.held == "" {
		return 0
	}
	return d.Len() + dataBytes
}

// DataPrograms are the programs whose accounts are held with their data. Nil lists none. It is immutable.
type DataPrograms struct {
	all      bool
	programs []Pubkey // in the order of their bytes
}

const noData, allData = "none", "all"

// ParseDataPrograms reads what String writes: none, all, or public keys with commas between them.
func ParseDataPrograms(text string) (*DataPrograms, error) {
	switch text {
	case noData:
		return nil, nil
	case allData:
		return &DataPrograms{all: true}, nil
	}
	keys, err := SplitKeys(text)
	if err != nil || len(keys) == 0 {
		return nil, cmp.Or(err, fmt.Errorf("it is %s, %s or a list of programs", noData, allData))
	}
	return &DataPrograms{programs: sortedKeys(keys)}, nil
}

// String returns the same text for lists of the same programs.
func (p *DataPrograms) String() string {
	switch {
	case p == nil:
		return noData
	case p.all:
		return allData
	}
	return JoinKeys(p.programs)
}

// MarshalText is String, for JSON.
func (p *DataPrograms) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is the inverse of MarshalText, but for none.
func (p *DataPrograms) UnmarshalText(text []byte) error {
	read, err := ParseDataPrograms(string(text))
	if err != nil || read == nil {
		return cmp.Or(err, errors.New("it lists no program"))
	}
	*p = *read
	return nil
}

// Keep reports whether the data of a program's accounts is held.
func (p *DataPrograms) Keep(program *Pubkey) bool {
	return p != nil && (p.all || contains(p.programs, program))
}

// Programs returns the listed programs in the order of their bytes, which must not be changed; nil where all are meant, or none.
func (p *DataPrograms) Programs() []Pubkey {
	if p == nil {
		return nil
	}
	return slices.Clip(p.programs)
}

// SetData sets the whole data of the write to a copy of data if held says that the data of its owner's accounts is held. The owner
// must be known.
func (w *AccountWrite) SetData(data []byte, held *DataPrograms) {
	if len(data) <= MaxDataBytes && held.Keep(&w.Owner) {
		w.Known |= FieldData
		w.Data = NewData(data)
	}
}
