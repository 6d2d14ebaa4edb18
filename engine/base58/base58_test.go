package base58

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	other "github.com/mr-tron/base58"
)

func TestMalformedTextIsRefused(t *testing.T) {
	const key = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	decode32 := func(s string) (b []byte, err error) {
		var k [32]byte
		err = Decode32(&k, s)
		return k[:], err
	}
	decode64 := func(s string) (b []byte, err error) {
		var k [64]byte
		err = Decode64(&k, s)
		return k[:], err
	}
	for name, tt := range map[string]struct {
		decode func(string) ([]byte, error)
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
		"longest text of any bytes":  {Decode, strings.Repeat("1", maxChars), nil},
		"too long text of any bytes": {Decode, strings.Repeat("1", maxChars+1), errLength},
		"bad character of any bytes": {Decode, "l", errCharacter},
	} {
		b, err := tt.decode(tt.in)
		if !errors.Is(err, tt.want) || err != nil && (len(bytes.Trim(b, "\x00")) > 0 || !errors.Is(err, Err)) {
			t.Errorf("%s: %x, err = %v, want zeros and %v", name, b, err, tt.want)
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
	f.Add(bytes.Repeat([]byte{0xff}, 64)) // no sum of limbs is greater
	f.Add(append(make([]byte, 30), 1, 2))
	f.Add(append(make([]byte, 63), 1))
	f.Add([]byte("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"))
	f.Add([]byte(strings.Repeat("1", 63) + "z"))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 250}, 50))
	random := rand.NewChaCha8([32]byte{58})
	for range 1000 { // a carry that is forgotten shows in some
		in := make([]byte, 64)
		_, _ = random.Read(in)
		f.Add(in)
	}
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
		err32, err64 := Decode32(&got32, in), Decode64(&got64, in)
		if ok := wantErr == nil && len(want) == 32; ok != (err32 == nil) || ok && !bytes.Equal(want, got32[:]) {
			t.Fatalf("Decode32(%q) = %x, %v; want %x, %v", in, got32, err32, want, wantErr)
		}
		if ok := wantErr == nil && len(want) == 64; ok != (err64 == nil) || ok && !bytes.Equal(want, got64[:]) {
			t.Fatalf("Decode64(%q) = %x, %v; want %x, %v", in, got64, err64, want, wantErr)
		}
	})
}
