package agave

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"ledgerd/engine/ledger"
)

// A storage holds account records, one after the other, each at a multiple of 8 bytes. Numbers
// are little endian.
//
//	  0  write version   u64
//	  8  data length     u64
//	 16  pubkey          32
//	 48  lamports        u64
//	 56  rent epoch      u64
//	 64  owner           32
//	 96  executable      u8, 0 or 1, and 7 bytes to fill up
//	104  hash            32, not used any more
//	136  data
//
// The used part ends with the data of the last record, or filled up to a multiple of 8.
const (
	recordHeadBytes = 136
	recordAlign     = 8
	maxDataBytes    = ledger.MaxDataBytes
)

// vecReader reads the records of storages. It keeps its buffer from one to the next.
type vecReader struct {
	r    bufio.Reader
	held *ledger.DataPrograms // whose accounts are told with their data
}

// read calls visit for each record in the first used bytes of a storage. A write is good until
// visit returns.
func (v *vecReader) read(in io.Reader, used uint64, visit func(w *ledger.AccountWrite, writeVersion uint64) error) error {
	v.r.Reset(in)
	if room := int(min(used, recordHeadBytes+maxDataBytes)); v.r.Size() < room {
		v.r = *bufio.NewReaderSize(in, room) // every record fits
	}
	var w ledger.AccountWrite
	for at := uint64(0); at < used; {
		if used-at < recordHeadBytes {
			return fmt.Errorf("at byte %d a record begins of which %d bytes are in use", at, used-at)
		}
		head, err := v.r.Peek(recordHeadBytes)
		if err != nil {
			return cut(err)
		}
		size := binary.LittleEndian.Uint64(head[8:])
		if size > maxDataBytes {
			return fmt.Errorf("at byte %d a record says its data takes %d bytes, more than any account's", at, size)
		}
		if size > used-at-recordHeadBytes {
			return fmt.Errorf("at byte %d a record says its data takes %d bytes, and %d are in use", at, size, used-at-recordHeadBytes)
		}
		if head[96] > 1 {
			return fmt.Errorf("at byte %d a record says neither that it is executable nor that it is not", at)
		}
		version := binary.LittleEndian.Uint64(head)
		w = ledger.AccountWrite{
			Pubkey:   ledger.Pubkey(head[16:48]),
			Lamports: ledger.Lamports(binary.LittleEndian.Uint64(head[48:])),
		}
		if w.Lamports != 0 {
			w.RentEpoch = binary.LittleEndian.Uint64(head[56:])
			w.Owner, w.Executable = ledger.Pubkey(head[64:96]), head[96] == 1
			w.Known = ledger.FieldsAll
			if ledger.IsTokenProgram(w.Owner) || v.held.Keep(&w.Owner) {
				whole, err := v.r.Peek(int(recordHeadBytes + size))
				if err != nil {
					return cut(err)
				}
				w.SetTokenFacts(whole[recordHeadBytes:])
				w.SetData(whole[recordHeadBytes:], v.held)
			}
		}
		if err := visit(&w, version); err != nil {
			return err
		}
		at += recordHeadBytes + size
		fill := min(-at%recordAlign, used-at)
		if _, err := v.r.Discard(int(recordHeadBytes + size + fill)); err != nil {
			return cut(err)
		}
		at += fill
	}
	return nil
}
