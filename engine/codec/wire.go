package codec

import (
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

// The wire format of a transaction. A count is a compact-u16: 7 bits a byte, least
// significant first, the high bit set on all but the last, at most 3 bytes, never longer
// than needed.
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
	Version         int                // LegacyTransaction or 0
	Signatures      []ledger.Signature // at least one; the first names the transaction
	StaticKeys      []ledger.Pubkey    // the keys the message holds itself, signers first
	RecentBlockhash ledger.Hash
	// LoadedWritable and LoadedReadonly count the keys the message takes from address
	// lookup tables. Which they are, only metadata tells.
	LoadedWritable, LoadedReadonly int
}

// ParseTransaction reads the whole of wire as one transaction. Instructions are checked
// for their bounds and skipped. Errors match ErrTransactionVersion or ErrCorrupt.
func ParseTransaction(wire []byte) (WireTransaction, error) {
	t := WireTransaction{Version: LegacyTransaction}
	if len(wire) > 0 && wire[0] > 0x80 {
		return WireTransaction{}, versionError(wire[0])
	}
	r := wireReader{decoder{b: wire}}
	t.Signatures = make([]ledger.Signature, r.count(len(ledger.Signature{})))
	for i := range t.Signatures {
		r.bytes(t.Signatures[i][:])
	}
	required := r.byte()
	if required&0x80 != 0 {
		if t.Version = int(required & 0x7f); t.Version != 0 {
			return WireTransaction{}, versionError(required)
		}
		required = r.byte()
	}
	readonlySigned, readonlyUnsigned := r.byte(), r.byte()
	t.StaticKeys = make([]ledger.Pubkey, r.count(len(ledger.Pubkey{})))
	for i := range t.StaticKeys {
		r.bytes(t.StaticKeys[i][:])
	}
	r.bytes(t.RecentBlockhash[:])
	for range r.count(minInstructionBytes) {
		r.byte()
		r.skip(r.count(1))
		r.skip(r.count(1))
	}
	if t.Version == 0 {
		for range r.count(minLookupBytes) {
			r.skip(len(ledger.Pubkey{}))
			writable := r.count(1)
			r.skip(writable)
			readonly := r.count(1)
			r.skip(readonly)
			t.LoadedWritable += writable
			t.LoadedReadonly += readonly
		}
	}
	switch {
	case int(required) != len(t.Signatures):
		r.fail("wrong count of signatures")
	case readonlySigned >= required || int(required)+int(readonlyUnsigned) > len(t.StaticKeys):
		r.fail("bad message header")
	}
	if err := r.finish(); err != nil {
		return WireTransaction{}, fmt.Errorf("cannot read transaction: %w", err)
	}
	return t, nil
}

const (
	minInstructionBytes = 3                        // program index and two empty lists
	minLookupBytes      = len(ledger.Pubkey{}) + 2 // table key and two empty lists
)

func versionError(b byte) error {
	return fmt.Errorf("%w: %d", ErrTransactionVersion, b&0x7f)
}

// wireReader is a decoder whose counts are of the wire format.
type wireReader struct{ decoder }

// count returns the next compact-u16, or 0 after failing where so many items of size
// bytes do not fit into what is left.
func (r *wireReader) count(size int) int {
	n := 0
	for shift := 0; ; shift += 7 {
		b := r.byte()
		n |= int(b&0x7f) << shift
		if b&0x80 == 0 {
			if b == 0 && shift > 0 {
				r.fail("compact-u16 longer than needed")
				return 0
			}
			break
		}
		if shift == 14 {
			r.fail("compact-u16 too long")
			return 0
		}
	}
	if n > 0xffff || n > r.left()/size {
		r.fail("count beyond the end")
		return 0
	}
	return n
}
