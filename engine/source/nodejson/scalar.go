package nodejson

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"ledgerd/engine/ledger"
)

// parseKey decodes a public key in base58; field names it in the error.
func parseKey(field, s string) (ledger.Pubkey, error) {
	k, err := ledger.ParsePubkey(s)
	if err != nil {
		return k, fieldError(field, "is not a base58 key of 32 bytes")
	}
	return k, nil
}

// parseOptKey decodes a key that may be null or absent.
func parseOptKey(field string, s *string) (k ledger.Opt[ledger.Pubkey], err error) {
	if k.Known = s != nil; k.Known {
		k.Value, err = parseKey(field, *s)
	}
	return k, err
}

// ParseHash decodes a block hash in base58.
func ParseHash(field string, s *string) (ledger.Hash, error) {
	if s == nil {
		return ledger.Hash{}, Missing(field)
	}
	h, err := ledger.ParseHash(*s)
	if err != nil {
		return h, fieldError(field, "is not a base58 hash of 32 bytes")
	}
	return h, nil
}

// parsePreviousHash decodes the parent's hash. Absent and zero, which base58 writes as ones,
// mean that the node did not know it.
func parsePreviousHash(field string, s *string) (h ledger.Opt[ledger.Hash], err error) {
	if s != nil {
		h.Value, err = ParseHash(field, s)
		h.Known = h.Value != ledger.Hash{}
	}
	return h, err
}

// parseSignature decodes a signature in base58.
func parseSignature(field, s string) (ledger.Signature, error) {
	sig, err := ledger.ParseSignature(s)
	if err != nil {
		return sig, fieldError(field, "is not a base58 signature of 64 bytes")
	}
	return sig, nil
}

// parseAmount decodes a token amount: a plain decimal in a string.
func parseAmount(field string, s *string) (uint64, error) {
	if s == nil {
		return 0, Missing(field)
	}
	n, err := strconv.ParseUint(*s, 10, 64)
	if err != nil || (len(*s) > 1 && (*s)[0] == '0') {
		return 0, fieldError(field, "is not a decimal string of a 64-bit number")
	}
	return n, nil
}

// Optional turns a pointer, nil where JSON has null or nothing, into a value.
func Optional[T any](p *T) ledger.Opt[T] {
	if p == nil {
		return ledger.Opt[T]{}
	}
	return ledger.Some(*p)
}

// numbers is a list of unsigned 64-bit numbers, each exact: no null, sign, fraction or
// exponent. It is nil where JSON has null or nothing.
type numbers []uint64

// UnmarshalJSON implements json.Unmarshaler.
func (n *numbers) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	list, ok := appendNumbers(make([]uint64, 0, bytes.Count(b, []byte{','})+1), b, 64)
	if !ok {
		return errors.New("a list of balances holds something else than 64-bit numbers")
	}
	*n = list
	return nil
}

// Epoch is a number of 64 bits. The largest, which says that an account pays no rent, comes changed out
// of proxies that take JSON numbers for floating-point ones: as 2^64, in several spellings.
type Epoch uint64

// UnmarshalJSON implements json.Unmarshaler.
func (e *Epoch) UnmarshalJSON(b []byte) error {
	if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		*e = Epoch(n)
		return nil
	}
	if f, err := strconv.ParseFloat(string(b), 64); err == nil && f == 1<<64 {
		*e = math.MaxUint64
		return nil
	}
	return errors.New("rentEpoch is of the wrong type or out of range")
}

// Key is a public key in base58 or as a list of 32 bytes.
type Key struct {
	ledger.Opt[ledger.Pubkey]
}

var errKey = errors.New("a key is not base58 or a list of 32 bytes")

// UnmarshalJSON implements json.Unmarshaler.
func (k *Key) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(b, &text) == nil {
		parsed, err := ledger.ParsePubkey(text)
		k.Opt = ledger.Some(parsed)
		if err != nil {
			return errKey
		}
		return nil
	}
	list, ok := appendNumbers([]byte(nil), b, 8)
	if !ok || len(list) != len(k.Value) {
		return errKey
	}
	k.Opt = ledger.Some(ledger.Pubkey(list))
	return nil
}

// appendNumbers appends the numbers of the JSON list b, which encoding/json has found to be
// well-formed, to dst. It is not ok if b is something else than a list of
// unsigned numbers of so many bits.
func appendNumbers[T uint8 | uint64](dst []T, b []byte, bits int) ([]T, bool) {
	inner, isList := bytes.CutPrefix(bytes.TrimSpace(b), []byte{'['})
	inner = bytes.TrimSpace(bytes.TrimSuffix(inner, []byte{']'}))
	if !isList {
		return nil, false
	}
	if len(inner) == 0 {
		return dst, true
	}
	for item := range bytes.SplitSeq(inner, []byte{','}) {
		v, err := strconv.ParseUint(string(bytes.TrimSpace(item)), 10, bits)
		if err != nil {
			return nil, false
		}
		dst = append(dst, T(v))
	}
	return dst, true
}
