package stream

import (
	"encoding/binary"
	"strconv"
	"time"

	"ledgerd/engine/ledger"
)

// Opcodes of RFC 6455, section 5.2, with the FIN bit set.
const (
	textFrame  = 0x81
	closeFrame = 0x88
	pingFrame  = 0x89
	pongFrame  = 0x8a
)

// appendFrame appends a text frame, unmasked as a server's frames are, with the payload
// that write appends. Payloads of ours are shorter than 64 KiB.
func appendFrame(dst []byte, write func([]byte) []byte) []byte {
	start := len(dst)
	dst = append(dst, textFrame, 126, 0, 0) // room for the longer of both headers
	dst = write(dst)
	n := len(dst) - start - 4
	if n >= 126 {
		binary.BigEndian.PutUint16(dst[start+2:], uint16(n))
		return dst
	}
	dst[start+1] = byte(n)
	copy(dst[start+2:], dst[start+4:])
	return dst[:len(dst)-2]
}

// appendControl appends a control frame; its payload is at most 125 bytes.
func appendControl(dst []byte, opcode byte, payload []byte) []byte {
	return append(append(dst, opcode, byte(len(payload))), payload...)
}

// appendClose appends a close frame with a code and a reason of at most 123 bytes.
func appendClose(dst []byte, code uint16, reason string) []byte {
	payload := binary.BigEndian.AppendUint16(make([]byte, 0, 125), code)
	return appendControl(dst, closeFrame, append(payload, reason[:min(len(reason), 123)]...))
}

func appendLiteral(b []byte, a *ledger.Account, at ledger.Opt[int64]) []byte {
	return append(appendCommon(b, a, at), '}')
}

// appendCommon appends the literal fields, without the closing brace.
func appendCommon(b []byte, a *ledger.Account, at ledger.Opt[int64]) []byte {
	b = append(b, `{"type":"account_update","pubkey":"`...)
	b = a.Pubkey.AppendBase58(b)
	b = append(b, `","lamports":`...)
	b = strconv.AppendUint(b, uint64(a.Lamports), 10)
	b = append(b, `,"timestamp":`...)
	return appendTime(b, at)
}

func appendExtended(b []byte, a *ledger.Account, at ledger.Opt[int64], slot ledger.Slot, seq ledger.Seq, level ledger.Commitment) []byte {
	b = appendCommon(b, a, at)
	b = appendPosition(append(b, ','), slot, seq)
	b = append(b, `,"owner":"`...)
	if a.Known&ledger.FieldOwner != 0 {
		b = a.Owner.AppendBase58(b)
	}
	b = append(b, `","executable":`...)
	b = strconv.AppendBool(b, a.Executable)
	b = append(b, `,"commitment":"`...)
	b = append(b, level.String()...)
	return append(b, `"}`...)
}

// appendPosition appends "slot":S,"seq":N.
func appendPosition(b []byte, slot ledger.Slot, seq ledger.Seq) []byte {
	b = append(b, `"slot":`...)
	b = strconv.AppendUint(b, uint64(slot), 10)
	b = append(b, `,"seq":`...)
	return strconv.AppendUint(b, uint64(seq), 10)
}

func appendRollback(b []byte, from, to ledger.Slot, seq ledger.Seq) []byte {
	b = append(b, `{"type":"rollback","from_slot":`...)
	b = strconv.AppendUint(b, uint64(from), 10)
	b = append(b, `,"to_slot":`...)
	b = strconv.AppendUint(b, uint64(to), 10)
	b = append(b, `,"seq":`...)
	b = strconv.AppendUint(b, uint64(seq), 10)
	return append(b, '}')
}

func appendSlotEnd(b []byte, slot ledger.Slot, seq ledger.Seq) []byte {
	b = append(b, `{"type":"slot_end",`...)
	return append(appendPosition(b, slot, seq), '}')
}

func appendHeartbeat(b []byte, slot ledger.Slot, seq ledger.Seq, now time.Time) []byte {
	b = append(b, `{"type":"heartbeat",`...)
	b = appendPosition(b, slot, seq)
	b = append(b, `,"timestamp":`...)
	b = appendTime(b, ledger.Some(now.Unix()))
	return append(b, '}')
}

// appendTime appends a time of Unix seconds as ISO 8601, null if it is not known.
func appendTime(b []byte, at ledger.Opt[int64]) []byte {
	if !at.Known {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = time.Unix(at.Value, 0).UTC().AppendFormat(b, "2006-01-02T15:04:05Z")
	return append(b, '"')
}
