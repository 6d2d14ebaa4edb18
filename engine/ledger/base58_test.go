package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/bits"
	"strings"
	"testing"

	"github.com/mr-tron/base58"
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
		key, err := ParsePubkey(text)
		if err != nil {
			t.Errorf("ParsePubkey(%q): %v", text, err)
		}
		if got := key.String(); got != text {
			t.Errorf("String of %q = %q", text, got)
		}
		if hash, err := ParseHash([]byte(text)); err != nil || hash != Hash(key) || hash.String() != text {
			t.Errorf("ParseHash(%q) = %v, %v", text, hash, err)
		}
		if other, err := base58.Decode(text); err != nil || !bytes.Equal(other, key[:]) {
			t.Errorf("the other implementation reads %q as %x, %v, not %x", text, other, err, key)
		}
	}
}

func TestMalformedBase58IsRefused(t *testing.T) {
	const key = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"
	keys := map[string]struct {
		in   string
		want error
	}{
		"empty":                      {"", errBase58Length},
		"31 ones":                    {strings.Repeat("1", 31), errBase58Length},
		"33 ones":                    {strings.Repeat("1", 33), errBase58Range},
		"45 characters":              {key + "11", errBase58Length},
		"a megabyte":                 {strings.Repeat("1", 1<<20), errBase58Length},
		"zero":                       {"0" + key[1:], errBase58Character},
		"capital o":                  {key[:20] + "O" + key[21:], errBase58Character},
		"capital i":                  {key[:20] + "I" + key[21:], errBase58Character},
		"small l":                    {key[:len(key)-1] + "l", errBase58Character},
		"space":                      {key[:len(key)-1] + " ", errBase58Character},
		"byte over 127":              {key[:len(key)-1] + "\xff", errBase58Character},
		"NUL":                        {"\x00" + key[1:], errBase58Character},
		"33 bytes in 44 characters":  {"JEKNVnkbo3jma5nREBBJCDoXFVeKkD56V3xKrvRmWxFH", errBase58Range},
		"largest text":               {strings.Repeat("z", 44), errBase58Range},
		"31 bytes in 42 characters":  {strings.Repeat("z", 42), errBase58Range},
		"one leading one too many":   {"1" + key, errBase58Range},
		"24 bytes in 32 characters":  {"1" + strings.Repeat("z", 31), errBase58Range},
		"bad character and too much": {strings.Repeat("z", 43) + "0", errBase58Character},
	}
	for name, tt := range keys {
		if _, err := ParsePubkey(tt.in); !errors.Is(err, tt.want) || !errors.Is(err, ErrBase58) {
			t.Errorf("%s: ParsePubkey: err = %v, want %v", name, err, tt.want)
		}
		if k, _ := ParsePubkey([]byte(tt.in)); k != (Pubkey{}) {
			t.Errorf("%s: ParsePubkey returned %x with its error", name, k)
		}
	}
	signatures := map[string]struct {
		in   string
		want error
	}{
		"63 ones":       {strings.Repeat("1", 63), errBase58Length},
		"65 ones":       {strings.Repeat("1", 65), errBase58Range},
		"89 characters": {strings.Repeat("1", 89), errBase58Length},
		"largest text":  {strings.Repeat("z", 88), errBase58Range},
		"bad character": {strings.Repeat("1", 63) + "l", errBase58Character},
		"a key":         {key, errBase58Length},
	}
	for name, tt := range signatures {
		if _, err := ParseSignature(tt.in); !errors.Is(err, tt.want) || !errors.Is(err, ErrBase58) {
			t.Errorf("%s: ParseSignature: err = %v, want %v", name, err, tt.want)
		}
	}
}

func TestKeysTravelAsTextInJSON(t *testing.T) {
	type named struct {
		Key  Pubkey
		Hash Hash
		Sig  Signature
	}
	want := named{TokenProgram, Hash(NativeMint), Signature{0, 0, 7}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got named
	if err := json.Unmarshal(text, &got); err != nil || got != want {
		t.Errorf("%s came back as %+v, %v", text, got, err)
	}
	if err := json.Unmarshal([]byte(`{"Key":"0"}`), &got); !errors.Is(err, ErrBase58) {
		t.Errorf("a bad key: err = %v, want ErrBase58", err)
	}
}

// The sums of AppendBase58 must fit into 64 bits for every input, so for all bits set.
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

func TestBase58DoesNotAllocate(t *testing.T) {
	key, sig := TokenProgram, Signature{1, 2, 3}
	keyText, sigText := []byte(key.String()), []byte(sig.String())
	buf := make([]byte, 0, text64Max)
	if n := testing.AllocsPerRun(100, func() {
		buf = key.AppendBase58(buf[:0])
		buf = sig.AppendBase58(buf[:0])
		key, _ = ParsePubkey(keyText)
		sig, _ = ParseSignature(sigText)
		_, _ = ParsePubkey("not a key")
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// FuzzBase58 holds both directions against another implementation: the bytes of the input
// as a key and as a signature, and the input as a text.
func FuzzBase58(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Add(append(make([]byte, 30), 1, 2))
	f.Add(append(make([]byte, 63), 1))
	f.Add([]byte("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"))
	f.Add([]byte(strings.Repeat("1", 63) + "z"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var key Pubkey
		var sig Signature
		copy(key[:], in)
		copy(sig[:], in)
		if got, want := key.String(), base58.Encode(key[:]); got != want {
			t.Fatalf("%x: String = %q, want %q", key, got, want)
		}
		if got, want := sig.String(), base58.Encode(sig[:]); got != want {
			t.Fatalf("%x: String = %q, want %q", sig, got, want)
		}
		if got, err := ParsePubkey(key.String()); err != nil || got != key {
			t.Fatalf("%x came back as %x, %v", key, got, err)
		}
		if got, err := ParseSignature([]byte(sig.String())); err != nil || got != sig {
			t.Fatalf("%x came back as %x, %v", sig, got, err)
		}
		if len(in) > text64Max {
			return // the other implementation takes quadratic time
		}
		other, otherErr := base58.Decode(string(in))
		got32, err := ParsePubkey(in)
		if ok := otherErr == nil && len(other) == 32; ok != (err == nil) || ok && !bytes.Equal(other, got32[:]) {
			t.Fatalf("ParsePubkey(%q) = %x, %v; want %x, %v", in, got32, err, other, otherErr)
		}
		got64, err := ParseSignature(in)
		if ok := otherErr == nil && len(other) == 64; ok != (err == nil) || ok && !bytes.Equal(other, got64[:]) {
			t.Fatalf("ParseSignature(%q) = %x, %v; want %x, %v", in, got64, err, other, otherErr)
		}
	})
}
