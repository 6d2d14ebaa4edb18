package codec

import (
	"encoding/binary"
	"fmt"

	"ledgerd/engine/ledger"
)

const (
	kindRecord = 0x10 // plus the RecordKind

	recordTime         = 1 << 0 // flags of a record
	recordByDepth      = 1 << 1 // with formatByDepth
	recordHorizon      = 1 << 2 // with formatHorizon
	recordProcessed    = 1 << 3 // of base state, with formatHorizon: its level is known to be processed
	recordConfirmed    = 1 << 4 // likewise, confirmed
	recordFlags        = recordTime | recordByDepth | recordHorizon | recordProcessed | recordConfirmed
	updateOwnerBefore  = 1 << 0 // flags of an update
	updateWalletBefore = 1 << 1 // with formatWalletsBefore
	updateWritten      = 1 << 2 // with formatHorizon, of a block
	updateDataBefore   = 1 << 3 // with formatData

	minUpdateBytes  = 1 + minAccountBytes
	minWrittenBytes = 1 + 2
)

// AppendRecord appends the encoding of a record, whose Kind and the part that goes with
// it must be set:
//
//	format version   u8, see the package
//	kind             u8: 0x10 and block 1, rollback 2, status 3, base 4
//	flags            time known, final by depth, horizon known, level of base state processed, confirmed
//	version          number
//	slot             number
//	hash             key
//	[time]           signed, Unix seconds
//	[horizon]        number
//	first seq        number
//	state hash       u64 × 4, little endian
//	the part         block: block; base: base state; status: u8;
//	                 rollback: from slot number, unchanged number n, account × n
//	updates          number n, then × n:
//	  flags          owner before, wallet before known, account is as a write of the block (format 4), data before known
//	  account        account; or as write: index of the write number, since number
//	  [owner before] key
//	  [wallet before] key
//	  [data before]  see appendDataBefore
func AppendRecord(dst []byte, r *ledger.Record) []byte {
	flags := bit(r.Time.Known, recordTime) | bit(r.ByDepth, recordByDepth) | bit(r.Horizon.Known, recordHorizon)
	if r.Base != nil && r.Base.Level.Known {
		flags |= recordProcessed << r.Base.Level.Value
	}
	format := recordFormat(r)
	withData := format >= formatData
	dst = append(dst, format, kindRecord|byte(r.Kind), flags)
	dst = appendNumber(dst, r.Version)
	dst = appendNumber(dst, r.Slot)
	dst = append(dst, r.Hash[:]...)
	if r.Time.Known {
		dst = binary.AppendVarint(dst, r.Time.Value)
	}
	if r.Horizon.Known {
		dst = appendNumber(dst, r.Horizon.Value)
	}
	dst = appendNumber(dst, r.FirstSeq)
	for _, word := range r.StateHash {
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	switch r.Kind {
	case ledger.BlockRecord:
		dst = appendBlock(dst, r.Block, withData)
	case ledger.BaseRecord:
		dst = appendBaseState(dst, r.Base, withData)
	case ledger.StatusRecord:
		dst = append(dst, byte(r.Status))
	case ledger.RollbackRecord:
		dst = appendNumber(dst, r.FromSlot)
		dst = appendList(dst, r.Unchanged, withData, appendAccount)
	default:
		panic(fmt.Sprintf("no encoding for record kind %d", r.Kind))
	}
	return appendList(dst, r.Updates, withData, appendUpdate)
}

// recordFormat returns the lowest format version that can express the record.
func recordFormat(r *ledger.Record) byte {
	var writes []ledger.AccountWrite
	switch {
	case r.Block != nil:
		writes = r.Block.Accounts
	case r.Base != nil:
		writes = r.Base.Accounts
	}
	switch needs := writesNeed(writes, formatData, formatReadOnly); {
	case needs > 0:
		return needs
	case accountsHaveData(r):
		return formatData
	case r.Block != nil && hasErr(r.Block):
		return formatErr
	case r.Horizon.Known, r.Base != nil && r.Base.Level.Known:
		return formatHorizon
	case r.ByDepth:
		return formatByDepth
	}
	for i := range r.Updates {
		if r.Updates[i].WalletBefore.Known {
			return formatWalletsBefore
		}
	}
	return formatVersion
}

// accountsHaveData reports whether an update or an account of the record has its data.
func accountsHaveData(r *ledger.Record) bool {
	for i := range r.Updates {
		if r.Updates[i].Account.Known&ledger.FieldData != 0 || r.Updates[i].DataBefore.Known {
			return true
		}
	}
	for i := range r.Unchanged {
		if r.Unchanged[i].Known&ledger.FieldData != 0 {
			return true
		}
	}
	return false
}

// DecodeRecord reads a record that takes the whole of b. Errors match ErrCorrupt.
func DecodeRecord(b []byte) (*ledger.Record, error) {
	d := &decoder{b: b}
	r := new(ledger.Record)
	version := d.version(formatReadOnly)
	d.tellsData = version >= formatData
	kind := d.byte()
	f := d.flags(recordFlags)
	r.Version = ledger.Version(d.number())
	r.Slot = ledger.Slot(d.number())
	d.bytes(r.Hash[:])
	if f&recordTime != 0 {
		r.Time = ledger.Some(d.signed())
	}
	if f&recordHorizon != 0 {
		r.Horizon = ledger.Some(ledger.Slot(d.number()))
	}
	r.FirstSeq = ledger.Seq(d.number())
	var hash [8 * len(r.StateHash)]byte
	d.bytes(hash[:])
	for i := range r.StateHash {
		r.StateHash[i] = binary.LittleEndian.Uint64(hash[8*i:])
	}
	switch kind {
	case kindRecord | byte(ledger.BlockRecord):
		r.Block = d.block()
	case kindRecord | byte(ledger.BaseRecord):
		r.Base = d.baseState(levelOf(f))
	case kindRecord | byte(ledger.StatusRecord):
		r.Status, r.ByDepth = d.status(), f&recordByDepth != 0
	case kindRecord | byte(ledger.RollbackRecord):
		r.FromSlot = ledger.Slot(d.number())
		r.Unchanged = list(d, minAccountBytes, (*decoder).updated)
	default:
		d.fail("unknown kind of record")
	}
	r.Kind = ledger.RecordKind(kind &^ kindRecord)
	r.Updates = d.updates(r.Block, version)
	level := f & (recordProcessed | recordConfirmed)
	if level != 0 && r.Base == nil || level == recordProcessed|recordConfirmed {
		d.fail("bad level of base state")
	}
	if version != recordFormat(r) || f&recordByDepth != 0 && r.Status != ledger.StatusFinalized {
		d.fail("not the format version of such a record")
	}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("cannot read record: %w", err)
	}
	return r, nil
}

// levelOf returns the level of base state from the flags of its record.
func levelOf(flags byte) (level ledger.Opt[ledger.Commitment]) {
	switch {
	case flags&recordProcessed != 0:
		return ledger.Some(ledger.Processed)
	case flags&recordConfirmed != 0:
		return ledger.Some(ledger.Confirmed)
	}
	return level
}

// updated reads the account of an update, which does not tell whether it is a mint.
func (d *decoder) updated(a *ledger.Account) {
	if d.account(a); a.Known&ledger.FieldMint != 0 {
		d.fail("an update that tells of a mint")
	}
}

func appendUpdate(dst []byte, u *ledger.Update, withData bool) []byte {
	dst = append(dst, bit(u.OwnerBefore.Known, updateOwnerBefore)|bit(u.WalletBefore.Known, updateWalletBefore)|
		bit(u.Written != 0, updateWritten)|bit(u.DataBefore.Known, updateDataBefore))
	if u.Written != 0 {
		dst = appendNumber(appendNumber(dst, u.Written-1), u.Account.Since)
	} else {
		dst = appendAccount(dst, &u.Account, withData)
	}
	dst = appendOptKey(appendOptKey(dst, &u.OwnerBefore), &u.WalletBefore)
	if u.DataBefore.Known {
		return appendDataBefore(dst, u.DataBefore.Value.Bytes(), u.Account.Data.Bytes())
	}
	return dst
}

// updates reads the updates of a record; b is its block, nil for none. Each update of a block is of another account that the block
// writes, so they take no more memory than its writes.
func (d *decoder) updates(b *ledger.Block, version byte) []ledger.Update {
	if b == nil || version < formatHorizon {
		b = new(ledger.Block)
		return items(d, d.count(minUpdateBytes), func(d *decoder, u *ledger.Update) { d.update(u, b) })
	}
	n := d.count(minWrittenBytes)
	if n > len(b.Accounts) {
		d.fail("more updates than writes")
		n = 0
	}
	return items(d, n, func(d *decoder, u *ledger.Update) { d.update(u, b) })
}

// update reads an update, which may be as a write of b.
func (d *decoder) update(u *ledger.Update, b *ledger.Block) {
	f := d.flags(updateOwnerBefore | updateWalletBefore | bit(len(b.Accounts) > 0, updateWritten) | bit(d.tellsData, updateDataBefore))
	if f&updateWritten == 0 {
		d.updated(&u.Account)
	} else if at := d.number(); at < uint64(len(b.Accounts)) {
		u.Written = uint32(at) + 1
		u.Account = b.Accounts[at].AsWritten(ledger.BlockProvenance(b.Slot), ledger.Provenance(d.number()))
	} else {
		d.fail("an update that is as no write")
	}
	u.OwnerBefore = optKey[ledger.Pubkey](d, f&updateOwnerBefore != 0)
	u.WalletBefore = optKey[ledger.Pubkey](d, f&updateWalletBefore != 0)
	if f&updateDataBefore != 0 {
		u.DataBefore = ledger.Some(d.dataBefore(&u.Account))
	}
}
