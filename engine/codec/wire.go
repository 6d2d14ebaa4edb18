package codec

import (
	"errors"
	"fmt"

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
// transaction without one has so many signatures that their count looks like it.
//
// Sources: solana-transaction and solana-message crates (versioned/mod.rs, legacy.rs,
// v0/mod.rs), solana-short-vec; SIMD-0385 for later versions.

// LegacyTransaction is the Version of transactions from before there were versions.
const LegacyTransaction = -1

// ErrTransactionVersion says that a transaction has a version this package cannot read.
var ErrTransactionVersion = errors.New("unsupported transaction version")

// WireTransaction is what the wire format of a transaction tells without its metadata.
type WireTransaction struct {
	Version    int                // LegacyTransaction or 0
	Signatures []ledger.Signature // at least one; the first names the transaction
	StaticKeys []ledger.Pubkey    // the keys the message holds itself, signers first; others only metadata tells
}

// ParseTransaction reads the whole of wire as one transaction. Instructions and lookups are checked
// for their bounds and skipped. Errors match ErrTransactionVersion or ErrCorrupt.
func ParseTransaction(wire []byte) (WireTransaction, error) {
	t := WireTransaction{Version: LegacyTransaction}
	if len(wire) > 0 && wire[0] > 0x80 {
		return WireTransaction{}, versionError(wire[0])
	}
	d := &decoder{b: wire}
	if len(wire) > maxWireBytes {
		d.fail("too long")
	}
	t.Signatures = list(d, len(ledger.Signature{}), func(d *decoder, s *ledger.Signature) { d.bytes(s[:]) })
	required := d.byte()
	if required&0x80 != 0 {
		if t.Version = int(required & 0x7f); t.Version != 0 {
			return WireTransaction{}, versionError(required)
		}
		required = d.byte()
	}
	readonlySigned, readonlyUnsigned := d.byte(), d.byte()
	t.StaticKeys = list(d, len(ledger.Pubkey{}), func(d *decoder, k *ledger.Pubkey) { d.bytes(k[:]) })
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
	switch {
	case int(required) != len(t.Signatures):
		d.fail("wrong count of signatures")
	case readonlySigned >= required || int(required)+int(readonlyUnsigned) > len(t.StaticKeys):
		d.fail("bad message header")
	}
	if err := d.finish(); err != nil {
		return WireTransaction{}, fmt.Errorf("cannot read transaction: %w", err)
	}
	return t, nil
}

const (
	// maxWireBytes is far more than a network packet takes. In so few bytes every count is below 2^16.
	maxWireBytes = 1<<16 - 1

	minInstructionBytes = 3                        // program index and two empty lists
	minLookupBytes      = len(ledger.Pubkey{}) + 2 // table key and two empty lists
)

func versionError(b byte) error {
	return fmt.Errorf("%w: %d", ErrTransactionVersion, b&0x7f)
}
