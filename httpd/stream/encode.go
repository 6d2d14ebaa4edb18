package stream

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/stream/frame"
)

// appendUpdate appends the frame of an account's state in a form. decimals are those of a token account's mint.
func appendUpdate(dst []byte, f form, a *ledger.Account, decimals ledger.Opt[uint8], at ledger.Opt[int64], slot ledger.Slot, seq ledger.Seq, level ledger.Commitment) []byte {
	return frame.AppendText(dst, func(b []byte) []byte {
		b = append(b, `{"type":"account_update","pubkey":"`...)
		b = a.Pubkey.AppendBase58(b)
		b = append(b, `","lamports":`...)
		b = strconv.AppendUint(b, uint64(a.Lamports), 10)
		b = append(b, `,"timestamp":`...)
		b = appendTime(b, at)
		if f.shows(extended) {
			b = appendExtended(b, a, slot, seq, level)
		}
		if f.shows(withTokens) {
			b = appendToken(append(b, `,"token":`...), tokenOf(a), decimals)
		}
		if f.shows(withData) {
			b = appendData(b, a)
		}
		return append(b, '}')
	})
}

// appendExtended appends the fields that the extended form adds.
func appendExtended(b []byte, a *ledger.Account, slot ledger.Slot, seq ledger.Seq, level ledger.Commitment) []byte {
	b = append(b, `,"slot":`...)
	b = strconv.AppendUint(b, uint64(slot), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, uint64(seq), 10)
	b = append(b, `,"owner":"`...)
	if a.Known&ledger.FieldOwner != 0 {
		b = a.Owner.AppendBase58(b)
	}
	b = append(b, `","executable":`...)
	b = strconv.AppendBool(b, a.Executable)
	b = append(b, `,"commitment":"`...)
	b = append(b, level.String()...)
	return append(b, '"')
}

// appendToken appends what a token account holds, null for an account that is none.
func appendToken(b []byte, t *ledger.TokenAccount, decimals ledger.Opt[uint8]) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	b = append(b, `{"mint":"`...)
	b = t.Mint.AppendBase58(b)
	b = append(b, `","owner":"`...)
	b = t.Owner.AppendBase58(b)
	b = append(b, `","amount":"`...)
	b = strconv.AppendUint(b, t.Amount, 10)
	b = append(b, `","decimals":`...)
	if decimals.Known {
		b = strconv.AppendUint(b, uint64(decimals.Value), 10)
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

// appendData appends how much data an account has, and the data, null where it is not known.
func appendData(b []byte, a *ledger.Account) []byte {
	if a.Known&ledger.FieldData == 0 {
		return append(b, `,"space":null,"data":null`...)
	}
	b = append(b, `,"space":`...)
	b = strconv.AppendInt(b, int64(a.Data.Len()), 10)
	b = append(b, `,"data":"`...)
	b = base64.StdEncoding.AppendEncode(b, a.Data.Bytes())
	return append(b, '"')
}

// appendHeartbeat appends a whole frame, of now.
func appendHeartbeat(dst []byte, slot ledger.Slot, seq ledger.Seq) []byte {
	return frame.AppendText(dst, func(b []byte) []byte {
		return fmt.Appendf(b, `{"type":"heartbeat","slot":%d,"seq":%d,"timestamp":"%s"}`, slot, seq, timestamp(time.Now()))
	})
}

// appendGap appends that of what lies after one seq, up to another, only the newest state of
// each account follows.
func appendGap(b []byte, from, to ledger.Seq) []byte {
	return fmt.Appendf(b, `{"type":"gap","from_seq":%d,"to_seq":%d}`, from, to)
}

// appendTime appends a time of Unix seconds as ISO 8601, null if it is not known.
func appendTime(b []byte, at ledger.Opt[int64]) []byte {
	if !at.Known {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = time.Unix(at.Value, 0).UTC().AppendFormat(b, time.RFC3339) // which is much faster than others
	return append(b, '"')
}
