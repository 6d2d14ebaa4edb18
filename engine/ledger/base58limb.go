package ledger

import "encoding/binary"

// Both directions of base58 go through limbs of five digits. A number of 32 bytes is 8
// binary limbs of base 2^32 or 9 digit limbs of base 58^5, one of 64 bytes is 16 or 18.
// Changing the base is then a product of the row of limbs with a small matrix of
// constants, without dividing a long number, and carries are settled once at the end.
//
// Sums stay below 2^64: the text of 32 bytes by the size of its matrices alone, the text
// of 64 bytes because carries are settled halfway too. A test proves it for every column.
const (
	base58Alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

	limbDigits = 5
	limbBase   = 58 * 58 * 58 * 58 * 58

	// notDigit is the value of a character outside the alphabet. No digit has its bit.
	notDigit = 0x80
)

// Row i of a matrix holds, most significant limb first, what one unit of limb i of the
// source is worth in the other base.
var (
	toDigits32 = makeToDigits32()
	toDigits64 = makeToDigits64()
	toBinary32 = makeToBinary32()
	toBinary64 = makeToBinary64()

	digitValues = makeDigitValues()
)

func makeToDigits32() (m [8][9]uint32) {
	fillPowers(len(m), 1<<32, limbBase, func(i int) []uint32 { return m[i][:] })
	return m
}

func makeToDigits64() (m [16][18]uint32) {
	fillPowers(len(m), 1<<32, limbBase, func(i int) []uint32 { return m[i][:] })
	return m
}

func makeToBinary32() (m [9][8]uint32) {
	fillPowers(len(m), limbBase, 1<<32, func(i int) []uint32 { return m[i][:] })
	return m
}

func makeToBinary64() (m [18][16]uint32) {
	fillPowers(len(m), limbBase, 1<<32, func(i int) []uint32 { return m[i][:] })
	return m
}

// fillPowers fills the rows of a matrix from the last, which is 1, upwards: each is from
// times the one below, as limbs of base to.
func fillPowers(rows int, from, to uint64, row func(int) []uint32) {
	last := row(rows - 1)
	last[len(last)-1] = 1
	for i := rows - 2; i >= 0; i-- {
		above, below := row(i), row(i+1)
		var carry uint64
		for j := len(above) - 1; j >= 0; j-- {
			carry += uint64(below[j]) * from
			above[j] = uint32(carry % to)
			carry /= to
		}
	}
}

func makeDigitValues() (values [256]byte) {
	for c := range values {
		values[c] = notDigit
	}
	for v, c := range []byte(base58Alphabet) {
		values[c] = byte(v)
	}
	return values
}

// append58x32 appends the base58 of 32 bytes.
func append58x32(dst []byte, b *[32]byte) []byte {
	var limbs [9]uint64
	for i := range toDigits32 {
		bin, row := uint64(binary.BigEndian.Uint32(b[i*4:])), &toDigits32[i]
		for j := range limbs {
			limbs[j] += bin * uint64(row[j])
		}
	}
	carryDigits(limbs[:])
	var digits [9 * limbDigits]byte
	for i, limb := range limbs {
		putDigits((*[limbDigits]byte)(digits[i*limbDigits:]), uint32(limb))
	}
	return appendDigits(dst, digits[:], leadingZeros(b[:]))
}

// append58x64 appends the base58 of 64 bytes.
func append58x64(dst []byte, b *[64]byte) []byte {
	var limbs [18]uint64
	for i := range toDigits64 {
		if i == len(toDigits64)/2 {
			carryDigits(limbs[:]) // room for the other half
		}
		bin, row := uint64(binary.BigEndian.Uint32(b[i*4:])), &toDigits64[i]
		for j := range limbs {
			limbs[j] += bin * uint64(row[j])
		}
	}
	carryDigits(limbs[:])
	var digits [18 * limbDigits]byte
	for i, limb := range limbs {
		putDigits((*[limbDigits]byte)(digits[i*limbDigits:]), uint32(limb))
	}
	return appendDigits(dst, digits[:], leadingZeros(b[:]))
}

// carryDigits brings every limb but the first below limbBase, and the first too when
// the number fits.
func carryDigits(limbs []uint64) {
	for j := len(limbs) - 1; j > 0; j-- {
		limbs[j-1] += limbs[j] / limbBase
		limbs[j] %= limbBase
	}
}

// putDigits writes the five digits of a limb.
func putDigits(d *[limbDigits]byte, limb uint32) {
	d[4] = byte(limb % 58)
	limb /= 58
	d[3] = byte(limb % 58)
	limb /= 58
	d[2] = byte(limb % 58)
	limb /= 58
	d[1] = byte(limb % 58)
	d[0] = byte(limb / 58)
}

// appendDigits appends the characters of the digits, with as many leading zeros as the
// number has leading zero bytes.
func appendDigits(dst, digits []byte, zeros int) []byte {
	digits = digits[leadingZeros(digits)-zeros:]
	for _, d := range digits {
		dst = append(dst, base58Alphabet[d])
	}
	return dst
}

func leadingZeros(b []byte) int {
	for i, v := range b {
		if v != 0 {
			return i
		}
	}
	return len(b)
}

// decode58x32 sets b to the bytes s stands for. After an error b is undefined.
func decode58x32[T string | []byte](b *[32]byte, s T) error {
	if len(s) < text32Min || len(s) > text32Max {
		return errBase58Length
	}
	var digits [9 * limbDigits]byte
	if !readDigits(digits[len(digits)-len(s):], s) {
		return errBase58Character
	}
	var bins [8]uint64
	for i := range toBinary32 {
		limb, row := digitLimb((*[limbDigits]byte)(digits[i*limbDigits:])), &toBinary32[i]
		for j := range bins {
			bins[j] += limb * uint64(row[j])
		}
	}
	carryBinary(bins[:])
	if bins[0]>>32 != 0 {
		return errBase58Range
	}
	for i, bin := range bins {
		binary.BigEndian.PutUint32(b[i*4:], uint32(bin))
	}
	return checkZeros(b[:], s)
}

// decode58x64 sets b to the bytes s stands for. After an error b is undefined.
func decode58x64[T string | []byte](b *[64]byte, s T) error {
	if len(s) < text64Min || len(s) > text64Max {
		return errBase58Length
	}
	var digits [18 * limbDigits]byte
	if !readDigits(digits[len(digits)-len(s):], s) {
		return errBase58Character
	}
	var bins [16]uint64
	for i := range toBinary64 {
		if i == len(toBinary64)/2 {
			carryBinary(bins[:]) // room for the other half
		}
		limb, row := digitLimb((*[limbDigits]byte)(digits[i*limbDigits:])), &toBinary64[i]
		for j := range bins {
			bins[j] += limb * uint64(row[j])
		}
	}
	carryBinary(bins[:])
	if bins[0]>>32 != 0 {
		return errBase58Range
	}
	for i, bin := range bins {
		binary.BigEndian.PutUint32(b[i*4:], uint32(bin))
	}
	return checkZeros(b[:], s)
}

// readDigits sets digits, as long as s, to the values of its characters. It returns
// false if one has none.
func readDigits[T string | []byte](digits []byte, s T) bool {
	var seen byte
	for i := range digits {
		v := digitValues[s[i]]
		digits[i] = v
		seen |= v
	}
	return seen&notDigit == 0
}

// digitLimb returns the number five digits stand for.
func digitLimb(d *[limbDigits]byte) uint64 {
	return (((uint64(d[0])*58+uint64(d[1]))*58+uint64(d[2]))*58+uint64(d[3]))*58 + uint64(d[4])
}

// carryBinary brings every limb but the first below 2^32, and the first too when the
// number fits.
func carryBinary(bins []uint64) {
	for j := len(bins) - 1; j > 0; j-- {
		bins[j-1] += bins[j] >> 32
		bins[j] &= 1<<32 - 1
	}
}

// checkZeros refuses a text that has not one '1' for each leading zero byte of b.
func checkZeros[T string | []byte](b []byte, s T) error {
	ones := 0
	for ones < len(s) && s[ones] == base58Alphabet[0] {
		ones++
	}
	if ones != leadingZeros(b) {
		return errBase58Range
	}
	return nil
}
