package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// Meta describes the state that a snapshot holds.
type Meta struct {
	Version   ledger.Version   `json:"version"` // of the record after which the state was taken
	Slot      ledger.Slot      `json:"slot"`
	Blockhash ledger.Hash      `json:"blockhash"`
	Seq       ledger.Seq       `json:"seq"`        // of the newest update up to and including the record
	StateHash ledger.StateHash `json:"state_hash"` // four words, least significant first
	// Block is the newest finalized block without transactions and writes: height, time,
	// parent.
	Block *ledger.Block `json:"-"`
	// BaseOnly: the snapshot holds base state alone and no block. Block says at which slot the
	// base state was taken; its hash is zero if that is not known.
	BaseOnly bool `json:"base_only,omitempty"`

	Root     ledger.Slot `json:"root"`              // the first block ever
	Floor    ledger.Slot `json:"floor"`             // blocks below it are pruned
	BaseSlot ledger.Slot `json:"base_slot"`         // the highest base state learned
	Horizon  ledger.Slot `json:"horizon,omitempty"` // of the record; 0 where an older program wrote the snapshot

	// What a start needs to know of the log before the record. A snapshot of an older program does not tell it.
	Statuses []ledger.SlotStatus `json:"statuses,omitempty"` // of blocks above Slot; the source may show these blocks again
	Bases    []ledger.Hash       `json:"bases,omitempty"`    // digests of base states that the source may show again
	Points   []Point             `json:"points,omitempty"`   // oldest first

	Taken time.Time `json:"taken"` // Write fills it in if it is zero

	// Write fills in what follows: how many live accounts, tombstones and mint facts
	// there are, and the history files that hold the blocks from Floor on, oldest first.
	Accounts   uint64       `json:"accounts"`
	Tombstones uint64       `json:"tombstones"`
	Mints      uint64       `json:"mints"`
	History    []HistoryRef `json:"history"`
}

// Point is the block that was the newest final one when the update Seq was published.
type Point struct {
	Seq   ledger.Seq `json:"seq"`
	Final ledger.Tip `json:"final"`
}

// HistoryRef names a history file and its expected content.
type HistoryRef struct {
	Name  string      `json:"name"`
	Bytes int64       `json:"bytes"`
	Hash  FileHash    `json:"hash"`
	First ledger.Slot `json:"first_slot"` // of the first block in it
	Last  ledger.Slot `json:"last_slot"`  // of the last
}

// FileHash is the hash in the footer of a file.
type FileHash [sha256.Size]byte

// MarshalText returns the hash in hexadecimal digits.
func (h FileHash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText is the inverse of MarshalText.
func (h *FileHash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("a hash of %d digits", len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// storedMeta is Meta as it is stored: as JSON, because it is read once a start, by people too, and
// may grow. Its block is an event of the shared codec.
type storedMeta struct {
	*Meta
	Block []byte `json:"block"`
}

// encode returns the raw bytes of a meta chunk.
func (m *Meta) encode() ([]byte, error) {
	return json.MarshalIndent(storedMeta{m, codec.AppendEvent(nil, bare(m.Block))}, "", "  ")
}

// decodeMeta is the inverse of encode.
func decodeMeta(raw []byte) (*Meta, error) {
	f := storedMeta{Meta: new(Meta)}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if d.InputOffset() != int64(len(raw)) {
		return nil, errors.New("more follows")
	}
	e, err := codec.DecodeEvent(f.Block)
	if err != nil {
		return nil, fmt.Errorf("newest block: %w", err)
	}
	var ok bool
	if f.Meta.Block, ok = e.(*ledger.Block); !ok {
		return nil, fmt.Errorf("newest block: it is a %T", e)
	}
	return f.Meta, nil
}

// bare returns the block without transactions and writes.
func bare(b *ledger.Block) *ledger.Block {
	bare := b.WithoutWrites()
	bare.Transactions = nil
	return bare
}
