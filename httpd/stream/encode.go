package stream

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/stream/frame"
)

// appendUpdate appends the frame of an account's state in a form. decimals are those of a token account's mint.
func appendUpdate(dst []byte, f form, a *ledger.Account, decimals ledger.Opt[uint8], at ledger.Opt[int64], slot ledger.Slot, seq ledger.Seq, level ledger.Commitment) []byte {
	return frame.AppendText(dst, func(b []byte) []byte {
		b = encode.AppendKey(append(b, `{"type":"account_update","pubkey":`...), &a.Pubkey)
		b = encode.AppendNumber(b, `,"lamports":`, a.Lamports)
		b = appendTime(append(b, `,"timestamp":`...), at)
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
	b = encode.AppendNumber(b, `,"slot":`, slot)
	b = encode.AppendNumber(b, `,"seq":`, seq)
	b = append(b, `,"owner":"`...)
	if a.Known&ledger.FieldOwner != 0 {
		b = a.Owner.AppendBase58(b)
	}
	b = strconv.AppendBool(append(b, `","executable":`...), a.Executable)
	b = append(append(b, `,"commitment":"`...), level.String()...)
	return append(b, '"')
}

// appendToken appends what a token account holds, null for an account that is none.
func appendToken(b []byte, t *ledger.TokenAccount, decimals ledger.Opt[uint8]) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	b = encode.AppendKey(append(b, `{"mint":`...), &t.Mint)
	b = encode.AppendKey(append(b, `,"owner":`...), &t.Owner)
	b = encode.AppendNumber(b, `,"amount":"`, t.Amount)
	return append(encode.AppendOpt(b, `","decimals":`, decimals, encode.Number), '}')
}

// appendData appends how much data an account has, and the data, null where it is not known.
func appendData(b []byte, a *ledger.Account) []byte {
	if a.Known&ledger.FieldData == 0 {
		return append(b, `,"space":null,"data":null`...)
	}
	b = append(encode.AppendNumber(b, `,"space":`, uint64(a.Data.Len())), `,"data":"`...)
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
