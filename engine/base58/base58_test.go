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
	keys := map[string]struct {
		in   string
		want error
	}{
		"empty":                      {"", errLength},
		"31 ones":                    {strings.Repeat("1", 31), errLength},
		"33 ones":                    {strings.Repeat("1", 33), errRange},
		"45 characters":              {key + "11", errLength},
		"a megabyte":                 {strings.Repeat("1", 1<<20), errLength},
		"zero":                       {"0" + key[1:], errCharacter},
		"capital o":                  {key[:20] + "O" + key[21:], errCharacter},
		"capital i":                  {key[:20] + "I" + key[21:], errCharacter},
		"small l":                    {key[:len(key)-1] + "l", errCharacter},
		"space":                      {key[:len(key)-1] + " ", errCharacter},
		"byte over 127":              {key[:len(key)-1] + "\xff", errCharacter},
		"NUL":                        {"\x00" + key[1:], errCharacter},
		"33 bytes in 44 characters":  {"JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH", errRange},
		"largest text":               {strings.Repeat("z", 44), errRange},
		"31 bytes in 42 characters":  {strings.Repeat("z", 42), errRange},
		"one leading one too many":   {"1" + key, errRange},
		"24 bytes in 32 characters":  {"1" + strings.Repeat("z", 31), errRange},
		"bad character and too much": {strings.Repeat("z", 43) + "0", errCharacter},
	}
	for name, tt := range keys {
		if err := Decode32(new([32]byte), tt.in); !errors.Is(err, tt.want) || !errors.Is(err, Err) {
			t.Errorf("%s: Decode32: err = %v, want %v", name, err, tt.want)
		}
	}
	signatures := map[string]struct {
		in   string
		want error
	}{
		"63 ones":       {strings.Repeat("1", 63), errLength},
		"65 ones":       {strings.Repeat("1", 65), errRange},
		"89 characters": {strings.Repeat("1", 89), errLength},
		"largest text":  {strings.Repeat("z", 88), errRange},
		"bad character": {strings.Repeat("1", 63) + "l", errCharacter},
		"a key":         {key, errLength},
	}
	for name, tt := range signatures {
		if err := Decode64(new([64]byte), tt.in); !errors.Is(err, tt.want) || !errors.Is(err, Err) {
			t.Errorf("%s: Decode64: err = %v, want %v", name, err, tt.want)
		}
	}
	if _, err := Decode(strings.Repeat("1", maxChars)); err != nil {
		t.Errorf("Decode of %d characters: %v", maxChars, err)
	}
	if _, err := Decode(strings.Repeat("1", maxChars+1)); !errors.Is(err, errLength) {
		t.Errorf("Decode of %d characters: err = %v, want %v", maxChars+1, err, errLength)
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

// What addLower leaves out must be worth nothing.
func TestWordsReachNoFurtherThanIsAdded(t *testing.T) {
	for j := range lowerWorth {
		for i, worth := range lowerWorth[j] {
			if i >= j && j < 8 && worth != 0 {
				t.Errorf("word %d is worth %d in limb %d, want 0", i, worth, j)
			}
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
