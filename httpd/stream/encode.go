package stream

import (
	"strconv"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/stream/frame"
)

// appendUpdate appends the frame of an account's state in a form. decimals are those of a token account's mint.
func appendUpdate(dst []byte, f form, a *ledger.Account, decimals ledger.Opt[uint8], at ledger.Opt[int64], slot ledger.Slot, seq ledger.Seq, level ledger.Commitment) []byte {
	return frame.AppendText(dst, func(b []byte) []byte {
		b = encode.AppendKey(b, `{"type":"account_update","pubkey":`, &a.Pubkey)
		b = encode.AppendNumber(b, `,"lamports":`, a.Lamports)
		b = encode.AppendOpt(b, `,"timestamp":`, at, encode.UnixTime)
		if f.shows(extended) {
			b = appendExtended(b, a, slot, seq, level)
		}
		if f.shows(withTokens) {
			b = appendToken(append(b, `,"token":`...), tokenOf(a), decimals)
		}
		b = append(b, '}')
		if f.shows(withData) {
			b = encode.AppendData(b, a, encode.WholeData)
		}
		return b
	})
}

// appendExtended appends the fields that the extended form adds.
func appendExtended(b []byte, a *ledger.Account, slot ledger.Slot, seq ledger.Seq, level ledger.Commitment) []byte {
	b = encode.AppendNumber(b, `,"slot":`, slot)
	b = encode.AppendNumber(b, `,"seq":`, seq)
	b = encode.AppendOwner(b, `,"owner":`, a)
	b = strconv.AppendBool(append(b, `,"executable":`...), a.Executable)
	b = append(append(b, `,"commitment":"`...), level.String()...)
	return append(b, '"')
}

// appendToken appends what a token account holds, null for an account that is none.
func appendToken(b []byte, t *ledger.TokenAccount, decimals ledger.Opt[uint8]) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	b = encode.AppendKey(b, `{"mint":`, &t.Mint)
	b = encode.AppendKey(b, `,"owner":`, &t.Owner)
	b = encode.AppendNumber(b, `,"amount":"`, t.Amount)
	return append(encode.AppendOpt(b, `","decimals":`, decimals, encode.Number), '}')
}

// heartbeat returns the packet of a heartbeat, of now.
func heartbeat(slot ledger.Slot, seq ledger.Seq) *packet {
	return message(`{"type":"heartbeat","slot":%d,"seq":%d,"timestamp":"%s"}`, slot, seq, timestamp(time.Now()))
}

// gap says that of what lies after one seq, up to another, only the newest state of each account follows.
func gap(from, to ledger.Seq) *packet {
	return message(`{"type":"gap","from_seq":%d,"to_seq":%d}`, from, to)
}

// timestamp returns a time in ISO 8601, to the second.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
