package base58

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	other "github.com/mr-tron/base58"
)

const key = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"

// malformed are texts that are no key, no signature, or neither.
var malformed = []string{
	"", strings.Repeat("1", 31), strings.Repeat("1", 33), key + "11", "0" + key[1:], key[:20] + "O" + key[21:], key[:20] + "I" + key[21:],
	key[:len(key)-1] + "l", key[:len(key)-1] + "\xff", "\x00" + key[1:], "1" + key, "1" + strings.Repeat("z", 31),
	"JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH", // 33 bytes in 44 characters
	strings.Repeat("z", 44), strings.Repeat("z", 42), strings.Repeat("z", 43) + "0", strings.Repeat("1", 63), strings.Repeat("1", 65),
	strings.Repeat("1", 89), strings.Repeat("z", 88), strings.Repeat("1", 63) + "l", key, "l",
}

func TestTextOfAnyBytesIsBounded(t *testing.T) {
	for n, want := range map[int]error{maxChars: nil, maxChars + 1: errLength} {
		if _, err := Decode(strings.Repeat("1", n)); !errors.Is(err, want) {
			t.Errorf("%d characters: %v, want %v", n, err, want)
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
	f.Add(bytes.Repeat([]byte{0xff}, 64)) // the greatest number
	f.Add(append(make([]byte, 30), 1, 2))
	f.Add(append(make([]byte, 63), 1))
	f.Add([]byte("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"))
	f.Add([]byte(strings.Repeat("1", 63) + "z"))
	f.Add(bytes.Repeat([]byte{0, 0, 0, 250}, 50))
	for _, text := range malformed {
		f.Add([]byte(text))
	}
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
		if got, err := Decode(string(Append(nil, in))); err != nil || !bytes.Equal(got, in) {
			t.Fatalf("%x came back as %x, %v", in, got, err)
		}
		want, wantErr := other.Decode(string(in))
		if _, err := Decode(string(in)); (wantErr == nil || len(in) == 0) != (err == nil) || err != nil && !errors.Is(err, Err) {
			t.Fatalf("Decode(%q): %v, want %v", in, err, wantErr)
		}
		got32, got64 = [32]byte{}, [64]byte{}
		err32, err64 := Decode32(&got32, in), Decode64(&got64, in)
		if err32 != nil && got32 != [32]byte{} || err64 != nil && got64 != [64]byte{} {
			t.Fatalf("%q leaves %x, %v and %x, %v, want zeros", in, got32, err32, got64, err64)
		}
		if ok := wantErr == nil && len(want) == 32; ok != (err32 == nil) || ok && !bytes.Equal(want, got32[:]) {
			t.Fatalf("Decode32(%q) = %x, %v; want %x, %v", in, got32, err32, want, wantErr)
		}
		if ok := wantErr == nil && len(want) == 64; ok != (err64 == nil) || ok && !bytes.Equal(want, got64[:]) {
			t.Fatalf("Decode64(%q) = %x, %v; want %x, %v", in, got64, err64, want, wantErr)
		}
	})
}
