package httpd

import (
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// Names and values of response headers, as bytes so that setting them allocates nothing.
// Names keep their spelling because they are set as canonical.
var (
	nameCacheControl = []byte("Cache-Control")
	nameRetryAfter   = []byte("Retry-After")
	nameAllow        = []byte("Allow")

	noCache   = []byte("no-cache")
	immutable = []byte("public, max-age=31536000, immutable")

	typeJSON    = []byte("application/json")
	typeMetrics = []byte("text/plain; version=0.0.4; charset=utf-8")

	allowedMethods = []byte("GET, HEAD, OPTIONS")
)

// fixedLines are the same on every response. Bodies depend on Accept-Encoding alone; no
// origin is trusted more than another, because there is nothing but public data.
const fixedLines = "\r\nAccess-Control-Allow-Origin: *" +
	"\r\nAccess-Control-Expose-Headers: X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Ledger-Slot, X-Ledger-Lag-Ms, X-Ledger-Partial, ETag, Cache-Control, Retry-After" +
	"\r\nVary: Accept-Encoding" +
	"\r\nX-Content-Type-Options: nosniff" +
	"\r\nContent-Security-Policy: default-src 'none'" +
	"\r\nCache-Control"

// preflightHeaders are on the answer to OPTIONS.
var preflightHeaders = [][2][]byte{
	{nameAllow, allowedMethods},
	{[]byte("Access-Control-Allow-Headers"), []byte("If-None-Match")},
	{[]byte("Access-Control-Max-Age"), []byte("86400")},
}

// setNumber sets a header to a decimal number, made in scratch.
func setNumber(h *fasthttp.ResponseHeader, name []byte, n int64, scratch []byte) {
	h.SetCanonical(name, strconv.AppendInt(scratch[:0], n, 10))
}

// appendAllowance appends what is left of the rate limit.
func appendAllowance(dst []byte, a *allowance, now time.Time) []byte {
	dst = append(dst, "X-RateLimit-Limit: "...)
	dst = strconv.AppendInt(dst, int64(a.limit), 10)
	dst = append(dst, "\r\nX-RateLimit-Remaining: "...)
	dst = strconv.AppendInt(dst, int64(a.remaining), 10)
	dst = append(dst, "\r\nX-RateLimit-Reset: "...)
	return strconv.AppendInt(dst, ceilSeconds(now.Add(a.reset)), 10)
}

// ceilSeconds returns t in Unix seconds, rounded up.
func ceilSeconds(t time.Time) int64 {
	seconds := t.Unix()
	if t.Nanosecond() > 0 {
		seconds++
	}
	return seconds
}

// retryAfter returns a wait in whole seconds, rounded up, at least one.
func retryAfter(wait time.Duration) int64 {
	return int64(max(math.Ceil(wait.Seconds()), 1))
}

// appendTip appends which version of the ledger was answered from: absent before the first
// block, unless an import names a slot.
func appendTip(dst []byte, v ledger.View, now time.Time) []byte {
	if v.Head == nil || !v.Head.HasSlot() {
		return dst
	}
	dst = append(dst, "\r\nX-Ledger-Slot: "...)
	dst = strconv.AppendUint(dst, uint64(v.Tip().Slot), 10)
	dst = append(dst, "\r\nX-Ledger-Lag-Ms: "...)
	return strconv.AppendInt(dst, max(now.Sub(v.Head.Published).Milliseconds(), 0), 10)
}

// someAccounts, beside unknown fields, says that a list may lack accounts.
const someAccounts = ledger.FieldsShown + 1

// partialValues are the values of X-Ledger-Partial by the unknown fields and someAccounts.
var partialValues = func() (values [2 * someAccounts][]byte) {
	for set := range values {
		for _, f := range []struct {
			field ledger.Fields
			name  string
		}{
			{ledger.FieldOwner, "owner"}, {ledger.FieldExecutable, "executable"}, {ledger.FieldRentEpoch, "rent_epoch"}, {someAccounts, "accounts"},
		} {
			if ledger.Fields(set)&f.field == 0 {
				continue
			}
			if len(values[set]) > 0 {
				values[set] = append(values[set], ',')
			}
			values[set] = append(values[set], f.name...)
		}
		values[set] = slices.Clip(values[set])
	}
	return values
}()

// appendPartial appends the shown fields that no source has told, and whether a list may lack accounts.
func appendPartial(dst []byte, unknown ledger.Fields, lacks bool) []byte {
	unknown &= ledger.FieldsShown
	if lacks {
		unknown |= someAccounts
	}
	if unknown != 0 {
		dst = append(dst, "\r\nX-Ledger-Partial: "...)
		dst = append(dst, partialValues[unknown]...)
	}
	return dst
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tagOf returns the tag of a record, which also stands for what is unknown in it. Tags are
// equal on every replica and after every restart: two checksums of 32 bits, which processors
// compute. That is enough: nobody gains by forging a tag, and records that differ within 64
// bits only never share one, as the two polynomials have no factor in common.
func tagOf(record []byte, unknown ledger.Fields) uint64 {
	return uint64(crc32.Update(uint32(unknown), castagnoli, record))<<32 |
		uint64(crc32.Update(uint32(unknown), crc32.IEEETable, record))
}

// appendTag appends the weak entity tag. Weak, because all codings of a body share it.
func appendTag(dst []byte, tag uint64) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, `W/"`...)
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, hex[tag>>shift&0xf])
	}
	return append(dst, '"')
}
