package codec

import "ledgerd/engine/ledger"

// appendDataBefore appends the data of an account before an update, of which most is as after it:
//
//	start    number, of bytes that begin both
//	end      number, of the bytes after these that end both
//	length   number
//	between  bytes, of the data before
func appendDataBefore(dst, before, after []byte) []byte {
	start, end := shared(before, after)
	dst = appendNumber(appendNumber(dst, start), end)
	between := before[start : len(before)-end]
	return append(appendNumber(dst, len(between)), between...)
}

// shared returns how many bytes begin both, and how many after these end both.
func shared(a, b []byte) (start, end int) {
	n := min(len(a), len(b))
	for start < n && a[start] == b[start] {
		start++
	}
	for end < n-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return start, end
}

// dataBefore is the inverse of appendDataBefore. What all updates of a record share with the data after them is no longer than the record, where
// this is part of it.
func (d *decoder) dataBefore(a *ledger.Account) (none ledger.Data) {
	after, left := a.Data.Bytes(), uint64(len(d.b)-d.sharedData)
	start, end := d.number(), d.number()
	if start > uint64(len(after)) || end > uint64(len(after))-start || start+end > left {
		d.fail("data before an update that is not after it")
		return none
	}
	between := d.count(1)
	before := append([]byte(nil), after[:start]...)
	before = append(before, d.b[d.off:d.off+between]...)
	before = append(before, after[uint64(len(after))-end:]...)
	d.off += between
	d.sharedData += int(start + end)
	s, e := shared(before, after)
	if uint64(s) != start || uint64(e) != end || len(before) > ledger.MaxDataBytes || a.Known&ledger.FieldData != 0 && s == len(before) && s == len(after) {
		d.fail("data before an update that has another encoding, or is as after it")
		return none
	}
	return ledger.NewData(before)
}
