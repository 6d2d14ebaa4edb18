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

// Meta is what a snapshot is a state of.
type Meta struct {
	Version   ledger.Version // the record it is the state after
	Slot      ledger.Slot
	Blockhash ledger.Hash
	Seq       ledger.Seq // of the newest update up to and including the record
	StateHash ledger.StateHash
	// Block is the newest finalized block without transactions and writes: height, time,
	// parent.
	Block *ledger.Block
	// BaseOnly: it is the state of base state alone. No block is held; Block tells where the
	// base state stands, and its hash is zero if that is not known.
	BaseOnly bool

	Root     ledger.Slot // the first block ever
	Floor    ledger.Slot // blocks below it are pruned
	BaseSlot ledger.Slot // the highest base state learned

	Taken time.Time // filled in by Write if zero

	// What follows is filled in by Write: how many live accounts, tombstones and mint facts
	// there are, and where the blocks from Floor on are held, oldest first.
	Accounts, Tombstones, Mints uint64
	History                     []HistoryRef
}

// HistoryRef names a history file and says what it must be.
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

// metaFile is Meta as it is stored: as JSON, since it is read once a start, by people too, and
// may grow. Block is an event of the shared codec.
type metaFile struct {
	Version    ledger.Version   `json:"version"`
	Slot       ledger.Slot      `json:"slot"`
	Blockhash  string           `json:"blockhash"`
	Seq        ledger.Seq       `json:"seq"`
	StateHash  ledger.StateHash `json:"state_hash"` // four words, least significant first
	Block      []byte           `json:"block"`
	BaseOnly   bool             `json:"base_only,omitempty"`
	Root       ledger.Slot      `json:"root"`
	Floor      ledger.Slot      `json:"floor"`
	BaseSlot   ledger.Slot      `json:"base_slot"`
	Taken      time.Time        `json:"taken"`
	Accounts   uint64           `json:"accounts"`
	Tombstones uint64           `json:"tombstones"`
	Mints      uint64           `json:"mints"`
	History    []HistoryRef     `json:"history"`
}

// encode returns the raw bytes of a meta chunk.
func (m *Meta) encode() ([]byte, error) {
	f := metaFile{
		Version: m.Version, Slot: m.Slot, Blockhash: m.Blockhash.String(), Seq: m.Seq, StateHash: m.StateHash,
		Root: m.Root, Floor: m.Floor, BaseSlot: m.BaseSlot, Taken: m.Taken,
		Accounts: m.Accounts, Tombstones: m.Tombstones, Mints: m.Mints, History: m.History,
		Block: codec.AppendEvent(nil, bare(m.Block)), BaseOnly: m.BaseOnly,
	}
	raw, err := json.MarshalIndent(&f, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot encode what the snapshot is of: %w", err)
	}
	return raw, nil
}

// decodeMeta is the inverse of encode.
func decodeMeta(raw []byte) (*Meta, error) {
	var f metaFile
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	if d.InputOffset() != int64(len(raw)) {
		return nil, errors.New("more follows")
	}
	m := &Meta{
		Version: f.Version, Slot: f.Slot, Seq: f.Seq, StateHash: f.StateHash,
		Root: f.Root, Floor: f.Floor, BaseSlot: f.BaseSlot, Taken: f.Taken,
		Accounts: f.Accounts, Tombstones: f.Tombstones, Mints: f.Mints, History: f.History,
		BaseOnly: f.BaseOnly,
	}
	var err error
	if m.Blockhash, err = ledger.ParseHash(f.Blockhash); err != nil {
		return nil, fmt.Errorf("blockhash: %w", err)
	}
	e, err := codec.DecodeEvent(f.Block)
	if err != nil {
		return nil, fmt.Errorf("newest block: %w", err)
	}
	block, ok := e.(*ledger.Block)
	if !ok {
		return nil, fmt.Errorf("newest block: it is a %T", e)
	}
	m.Block = block
	return m, nil
}

// bare returns the block without transactions and writes.
func bare(b *ledger.Block) *ledger.Block {
	bare := b.WithoutWrites()
	bare.Transactions = nil
	return bare
}
