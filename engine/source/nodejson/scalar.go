package nodejson

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"ledgerd/engine/ledger"
)

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
	return strconv.ErrRange
}

// Key is a public key in base58 or as a list of 32 bytes.
type Key struct {
	ledger.Opt[ledger.Pubkey]
}

var errKey = errors.New("a key is neither base58 nor a list of 32 bytes")

// UnmarshalJSON implements json.Unmarshaler.
func (k *Key) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b[0] == '"' {
		k.Known = true
		return Unmarshal(b, &k.Value)
	}
	list, ok := appendNumbers([]byte(nil), b, 8)
	if !ok || len(list) != len(k.Value) {
		return errKey
	}
	k.Opt = ledger.Some(ledger.Pubkey(list))
	return nil
}

// appendNumbers appends the numbers of the JSON list b, which is known to be
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
