package base58

import (
	"bytes"
	"errors"
	"math/bits"
	"strings"
	"testing"

	other "github.com/mr-tron/base58"
)

func TestKnownKeysRoundTrip(t *testing.T) {
	for _, text := range []string{
		"11111111111111111111111111111111",
		"11111111111111111111111111111112",
		"Vote111111111111111111111111111111111111111",
		"So11111111111111111111111111111111111111112",
		"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
		"5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
		"JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFG", // 32 bytes of 0xff
	} {
		var key, again [32]byte
		if err := Decode32(&key, text); err != nil {
			t.Errorf("Decode32(%q): %v", text, err)
		}
		if err := Decode32(&again, []byte(text)); err != nil || again != key {
			t.Errorf("the bytes of %q are read as %x, %v, not %x", text, again, err, key)
		}
		if got := string(Append32(nil, &key)); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
		if want, err := other.Decode(text); err != nil || !bytes.Equal(want, key[:]) {
			t.Errorf("the other implementation reads %q as %x, %v, not %x", text, want, err, key)
		}
	}
}

func TestMalformedTextIsRefused(t *testing.T) {
	const key = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	decode32 := func(s string) (zero bool, err error) {
		var b [32]byte
		err = Decode32(&b, s)
		return b == [32]byte{}, err
	}
	decode64 := func(s string) (zero bool, err error) {
		var b [64]byte
		err = Decode64(&b, s)
		return b == [64]byte{}, err
	}
	decode := func(s string) (zero bool, err error) {
		b, err := Decode(s)
		return b == nil, err
	}
	for name, tt := range map[string]struct {
		decode func(string) (bool, error)
		in     string
		want   error
	}{
		"empty":                      {decode32, "", errLength},
		"31 ones":                    {decode32, strings.Repeat("1", 31), errLength},
		"33 ones":                    {decode32, strings.Repeat("1", 33), errRange},
		"45 characters":              {decode32, key + "11", errLength},
		"zero":                       {decode32, "0" + key[1:], errCharacter},
		"capital o":                  {decode32, key[:20] + "O" + key[21:], errCharacter},
		"capital i":                  {decode32, key[:20] + "I" + key[21:], errCharacter},
		"small l":                    {decode32, key[:len(key)-1] + "l", errCharacter},
		"byte over 127":              {decode32, key[:len(key)-1] + "\xff", errCharacter},
		"NUL":                        {decode32, "\x00" + key[1:], errCharacter},
		"33 bytes in 44 characters":  {decode32, "JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH", errRange},
		"largest text":               {decode32, strings.Repeat("z", 44), errRange},
		"31 bytes in 42 characters":  {decode32, strings.Repeat("z", 42), errRange},
		"one leading one too many":   {decode32, "1" + key, errRange},
		"24 bytes in 32 characters":  {decode32, "1" + strings.Repeat("z", 31), errRange},
		"bad character and too much": {decode32, strings.Repeat("z", 43) + "0", errCharacter},
		"63 ones":                    {decode64, strings.Repeat("1", 63), errLength},
		"65 ones":                    {decode64, strings.Repeat("1", 65), errRange},
		"89 characters":              {decode64, strings.Repeat("1", 89), errLength},
		"largest text of 64 bytes":   {decode64, strings.Repeat("z", 88), errRange},
		"bad character of 64 bytes":  {decode64, strings.Repeat("1", 63) + "l", errCharacter},
		"a key instead of 64 bytes":  {decode64, key, errLength},
		"longest text of any bytes":  {decode, strings.Repeat("1", maxChars), nil},
		"too long text of any bytes": {decode, strings.Repeat("1", maxChars+1), errLength},
		"bad character of any bytes": {decode, "l", errCharacter},
	} {
		zero, err := tt.decode(tt.in)
		if !errors.Is(err, tt.want) || err != nil && (!zero || !errors.Is(err, Err)) {
			t.Errorf("%s: err = %v, nothing decoded: %v, want %v", name, err, zero, tt.want)
		}
	}
}

// The sums of Append32 and Append64 must fit into 64 bits for every input, so for all bits set.
func TestNoSumOfLimbsOverflows(t *testing.T) {
	const word = 1<<32 - 1
	check := func(name string, before uint64, worth *words) uint64 {
		sum, carry := before, uint64(0)
		for _, w := range worth {
			high, low := bits.Mul64(word, w)
			if sum, carry = bits.Add64(sum, low, 0); high != 0 || carry != 0 {
				t.Fatalf("%s: sum overflows", name)
			}
		}
		return sum
	}
	// A settled limb is below pow5; settling adds at most the largest quotient.
	const largestCarry = 1<<64/pow5 + 1
	for j := range upperWorth {
		if sum := check("upper half", 0, &upperWorth[j]); sum > 1<<64-1-largestCarry {
			t.Errorf("limb %d of the upper half: carrying overflows", j)
		}
	}
	for j := range lowerWorth {
		if sum := check("lower half", pow5, &lowerWorth[j]); sum > 1<<64-1-largestCarry {
			t.Errorf("limb %d of the lower half: carrying overflows", j)
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	key, sig := [32]byte{1, 2, 3}, [64]byte{1, 2, 3}
	keyText, sigText := Append32(nil, &key), Append64(nil, &sig)
	buf := make([]byte, 0, Max64)
	if n := testing.AllocsPerRun(100, func() {
		buf = Append32(buf[:0], &key)
		buf = Append64(buf[:0], &sig)
		_ = Decode32(&key, keyText)
		_ = Decode64(&sig, sigText)
		_ = Decode32(&key, "not a key")
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzBase58 compares both directions with another implementation: the bytes of the input
// as a key, as a signature and as they are, and the input as a text.
func FuzzBase58(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Add(append(make([]byte, 30), 1, 2))
	f.Add(append(make([]byte, 63), 1))
	f.Add([]byte("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"))
	f.Add([]byte(strings.Repeat("1", 63) + "z"))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 250}, 50))
	f.Fuzz(func(t *testing.T, in []byte) {
		var key [32]byte
		var sig [64]byte
		copy(key[:], in)
		copy(sig[:], in)
		keyText, sigText := Append32(nil, &key), Append64(nil, &sig)
		if want := other.Encode(key[:]); string(keyText) != want {
			t.Fatalf("Append32 of %x = %q, want %q", key, keyText, want)
		}
		if want := other.Encode(sig[:]); string(sigText) != want {
			t.Fatalf("Append64 of %x = %q, want %q", sig, sigText, want)
		}
		var got32 [32]byte
		if err := Decode32(&got32, string(keyText)); err != nil || got32 != key {
			t.Fatalf("%x came back as %x, %v", key, got32, err)
		}
		var got64 [64]byte
		if err := Decode64(&got64, sigText); err != nil || got64 != sig {
			t.Fatalf("%x came back as %x, %v", sig, got64, err)
		}
		if len(in) > 4*Max64 {
			return // the other implementation takes quadratic time
		}
		if got, err := Decode(other.Encode(in)); err != nil || !bytes.Equal(got, in) {
			t.Fatalf("%x came back as %x, %v", in, got, err)
		}
		want, wantErr := other.Decode(string(in))
		got, err := Decode(string(in))
		if ok := wantErr == nil || len(in) == 0; ok != (err == nil) || !bytes.Equal(want, got) {
			t.Fatalf("Decode(%q) = %x, %v; want %x, %v", in, got, err, want, wantErr)
		}
		err = Decode32(&got32, in)
		if ok := wantErr == nil && len(want) == 32; ok != (err == nil) || ok && !bytes.Equal(want, got32[:]) {
			t.Fatalf("Decode32(%q) = %x, %v; want %x, %v", in, got32, err, want, wantErr)
		}
		err = Decode64(&got64, in)
		if ok := wantErr == nil && len(want) == 64; ok != (err == nil) || ok && !bytes.Equal(want, got64[:]) {
			t.Fatalf("Decode64(%q) = %x, %v; want %x, %v", in, got64, err, want, wantErr)
		}
	})
}
