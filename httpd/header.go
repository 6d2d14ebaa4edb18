package httpd

import (
	"hash/crc64"
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
	nameRateLimit     = []byte("X-RateLimit-Limit")
	nameRateRemaining = []byte("X-RateLimit-Remaining")
	nameRateReset     = []byte("X-RateLimit-Reset")
	nameSlot          = []byte("X-Ledger-Slot")
	nameLag           = []byte("X-Ledger-Lag-Ms")
	namePartial       = []byte("X-Ledger-Partial")
	nameETag          = []byte("ETag")
	nameCacheControl  = []byte("Cache-Control")
	nameRetryAfter    = []byte("Retry-After")
	nameAllow         = []byte("Allow")

	noCache   = []byte("no-cache")
	immutable = []byte("public, max-age=31536000, immutable")

	typeJSON    = []byte("application/json")
	typeMetrics = []byte("text/plain; version=0.0.4; charset=utf-8")

	allowedMethods = []byte("GET, HEAD, OPTIONS")
)

// fixedHeaders are the same on every response. Bodies depend on Accept-Encoding alone;
// no origin is trusted more than another, because there is nothing but public data.
var fixedHeaders = [][2][]byte{
	{[]byte("Access-Control-Allow-Origin"), []byte("*")},
	{[]byte("Access-Control-Expose-Headers"), []byte("X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Ledger-Slot, X-Ledger-Lag-Ms, X-Ledger-Partial, ETag, Cache-Control, Retry-After")},
	{[]byte("Vary"), []byte("Accept-Encoding")},
	{[]byte("X-Content-Type-Options"), []byte("nosniff")},
	{[]byte("Content-Security-Policy"), []byte("default-src 'none'")},
}

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

// setAllowance tells what is left of the rate limit.
func setAllowance(h *fasthttp.ResponseHeader, a *allowance, now time.Time, scratch []byte) {
	setNumber(h, nameRateLimit, int64(a.limit), scratch)
	setNumber(h, nameRateRemaining, int64(a.remaining), scratch)
	setNumber(h, nameRateReset, ceilSeconds(now.Add(a.reset)), scratch)
	if !a.allowed {
		setNumber(h, nameRetryAfter, retryAfter(a.reset), scratch)
	}
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

// setTip tells which version of the ledger was answered from: absent before the first
// block.
func setTip(h *fasthttp.ResponseHeader, v ledger.View, now time.Time, scratch []byte) {
	if v.Head == nil || !v.Head.HasBlock {
		return
	}
	h.SetCanonical(nameSlot, strconv.AppendUint(scratch[:0], uint64(v.Tip().Slot), 10))
	setNumber(h, nameLag, max(now.Sub(v.Head.Published).Milliseconds(), 0), scratch)
}

// partialValues are the values of X-Ledger-Partial by the unknown fields.
var partialValues = func() (values [ledger.FieldsShown + 1][]byte) {
	for set := range values {
		for _, f := range []struct {
			field ledger.Fields
			name  string
		}{
			{ledger.FieldOwner, "owner"}, {ledger.FieldExecutable, "executable"}, {ledger.FieldRentEpoch, "rent_epoch"},
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

// setPartial names the shown fields that no source has told.
func setPartial(h *fasthttp.ResponseHeader, unknown ledger.Fields) {
	if unknown &= ledger.FieldsShown; unknown != 0 {
		h.SetCanonical(namePartial, partialValues[unknown])
	}
}

// tagTable makes tags that are equal on every replica and after every restart. A checksum
// is enough: nobody gains by forging a tag, and bodies that differ in one place only, as
// two states of an account do, never share one.
var tagTable = crc64.MakeTable(crc64.ECMA)

// tagOf returns the tag of a record, which also stands for what is unknown in it.
func tagOf(record []byte, unknown ledger.Fields) uint64 {
	return crc64.Update(uint64(unknown), tagTable, record)
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
