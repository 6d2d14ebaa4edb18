package ledger

import "strconv"

// AppendUIAmount appends amount / 10^decimals as a plain decimal number without trailing
// zeros, as nodes write uiAmountString: 1500000 with 6 decimals is "1.5", and 0 is "0".
// The result has at most 258 bytes.
func AppendUIAmount(dst []byte, amount uint64, decimals uint8) []byte {
	if amount == 0 {
		return append(dst, '0')
	}
	var buf [20]byte
	digits := strconv.AppendUint(buf[:0], amount, 10)
	whole := len(digits) - int(decimals) // how many digits stand before the point
	if whole > 0 {
		dst = append(dst, digits[:whole]...)
		digits = digits[whole:]
	} else {
		dst = append(dst, '0')
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	if len(digits) == 0 {
		return dst
	}
	dst = append(dst, '.')
	for range -whole {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}
