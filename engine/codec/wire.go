package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"ledgerd/engine/ledger"
)

// The wire format of a transaction. A count is a compact-u16: a number below 2^16.
//
//	transaction   count, signatures of 64 each | message
//	message       [version u8: 0x80 + version, absent in legacy ones]
//	              required signatures u8 | readonly signed u8 | readonly unsigned u8
//	              count, static keys of 32 each
//	              recent blockhash 32
//	              count, instructions
//	              [version 0: count, lookups]
//	instruction   program index u8 | count, account indexes u8 | count, data u8
//	lookup        table key 32 | count, writable indexes u8 | count, readonly indexes u8
//
// Later versions put their version byte in front and the signatures at the end. No
// transaction without one has so many signatures that their count looks like it. Version 1:
//
//	version u8: 0x81 | required signatures u8 | readonly signed u8 | readonly unsigned u8
//	config mask u32, little endian | recent blockhash 32 | instructions u8 | static keys u8
//	static keys of 32 each | for each bit of the mask, config value of 4
//	for each instruction, program index u8, accounts u8, data u16, little endian
//	for each instruction, its account indexes and its data
//	required signatures of 64 each
//
// Sources: solana-transaction and solana-message crates (versioned/mod.rs, legacy.rs,
// v0/mod.rs), solana-short-vec; SIMD-0385 for version 1.

// LegacyTransaction is the Version of transactions from before there were versions.
const LegacyTransaction = -1

// ErrTransactionVersion says that a transaction has a version this package cannot read.
var ErrTransactionVersion = errors.New("unsupported transaction version")

// WireTransaction is what the wire format of a transaction contains; its metadata is elsewhere.
type WireTransaction struct {
	Version    int                // LegacyTransaction, 0 or 1
	Signatures []ledger.Signature // at least one; the first names the transaction
	Header     MessageHeader
	StaticKeys []ledger.Pubkey // the keys the message holds itself, signers first; only metadata has the others
}

// MessageHeader counts the static keys that sign, the last of these that are read-only, and the last of the others that are.
type MessageHeader struct{ Required, ReadonlySigned, ReadonlyUnsigned byte }

// IsReadOnly reports whether the transaction requests no write access to the static key with index i.
func (t *WireTransaction) IsReadOnly(i int) bool {
	if required := int(t.Header.Required); i < required {
		return i >= required-int(t.Header.ReadonlySigned)
	}
	return i >= len(t.StaticKeys)-int(t.Header.ReadonlyUnsigned)
}

// ParseTransaction reads the whole of wire as one transaction. Instructions and lookups are checked
// for their bounds and skipped. Errors match ErrTransactionVersion or ErrCorrupt.
func ParseTransaction(wire []byte) (t WireTransaction, err error) {
	d := &decoder{b: wire}
	switch {
	case len(wire) > 0 && wire[0] > versionOne:
		return WireTransaction{}, versionError(wire[0])
	case len(wire) > maxWireBytes:
		d.fail("too long")
	case len(wire) > 0 && wire[0] == versionOne:
		d.versionOne(&t)
	default:
		if err := d.signedMessage(&t); err != nil {
			return WireTransaction{}, err
		}
	}
	switch h := t.Header; {
	case int(h.Required) != len(t.Signatures):
		d.fail("wrong count of signatures")
	case h.ReadonlySigned >= h.Required || int(h.Required)+int(h.ReadonlyUnsigned) > len(t.StaticKeys):
		d.fail("bad message header")
	}
	if err := d.finish(); err != nil {
		return WireTransaction{}, fmt.Errorf("cannot read transaction: %w", err)
	}
	return t, nil
}

func (d *decoder) messageHeader() MessageHeader { return MessageHeader{d.byte(), d.byte(), d.byte()} }

func readSignature(d *decoder, s *ledger.Signature) { d.bytes(s[:]) }
func readKey(d *decoder, k *ledger.Pubkey)          { d.bytes(k[:]) }

// signedMessage reads signatures and a message behind them, legacy or of version 0.
func (d *decoder) signedMessage(t *WireTransaction) error {
	t.Version = LegacyTransaction
	t.Signatures = list(d, len(ledger.Signature{}), readSignature)
	if d.left() > 0 && d.b[d.off] >= versionZero {
		if version := d.byte(); version != versionZero {
			return versionError(version)
		}
		t.Version = 0
	}
	t.Header = d.messageHeader()
	t.StaticKeys = list(d, len(ledger.Pubkey{}), readKey)
	d.skip(len(ledger.Hash{}))
	for range d.count(minInstructionBytes) {
		d.byte()
		d.skip(d.count(1))
		d.skip(d.count(1))
	}
	if t.Version == 0 {
		for range d.count(minLookupBytes) {
			d.skip(len(ledger.Pubkey{}))
			d.skip(d.count(1))
			d.skip(d.count(1))
		}
	}
	return nil
}

// versionOne reads a transaction of version 1.
func (d *decoder) versionOne(t *WireTransaction) {
	t.Version = int(d.byte() & 0x7f)
	t.Header = d.messageHeader()
	var mask [4]byte
	d.bytes(mask[:])
	d.skip(len(ledger.Hash{}))
	instructions, keys := int(d.byte()), int(d.byte())
	if keys*len(ledger.Pubkey{}) > d.left() {
		d.fail("count beyond the end")
		return
	}
	t.StaticKeys = items(d, keys, readKey)
	d.skip(len(mask) * bits.OnesCount32(binary.LittleEndian.Uint32(mask[:])))
	payload := 0
	for range instructions {
		d.byte()
		payload += int(d.byte()) + int(d.byte()) + int(d.byte())<<8
	}
	d.skip(payload)
	if int(t.Header.Required)*len(ledger.Signature{}) > d.left() {
		d.fail("count beyond the end")
		return
	}
	t.Signatures = items(d, int(t.Header.Required), readSignature)
}

const (
	versionZero, versionOne = 0x80, 0x81

	// maxWireBytes is far more than a network packet takes. In so few bytes every count is below 2^16.
	maxWireBytes = 1<<16 - 1

	minInstructionBytes = 3                        // program index and two empty lists
	minLookupBytes      = len(ledger.Pubkey{}) + 2 // table key and two empty lists
)

func versionError(b byte) error {
	return fmt.Errorf("%w: %d", ErrTransactionVersion, b&0x7f)
}
