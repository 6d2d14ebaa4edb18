package ledger

import (
	"bytes"
	"strconv"
)

// AppendUIAmount appends amount / 10^decimals as a plain decimal number without trailing
// zeros, as nodes write uiAmountString: 1500000 with 6 decimals is "1.5", and 0 is "0".
// The result has at most 258 bytes.
func AppendUIAmount(dst []byte, amount uint64, decimals uint8) []byte {
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], amount, 10)
	if zeros := int(decimals) + 1 - len(digits); zeros > 0 { // so that one digit stands before the point
		digits = append(bytes.Repeat([]byte("0"), zeros), digits...)
	}
	point := len(digits) - int(decimals)
	dst = append(dst, digits[:point]...)
	if fraction := bytes.TrimRight(digits[point:], "0"); len(fraction) > 0 {
		dst = append(append(dst, '.'), fraction...)
	}
	return dst
}
