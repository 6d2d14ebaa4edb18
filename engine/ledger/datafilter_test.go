package ledger

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/base58"
)

func TestPartsOfDataAreBase58OfBoundedLength(t *testing.T) {
	long := slices.Repeat([]byte{255}, MaxPartBytes+1)
	for text, want := range map[string][]byte{
		"":                                  nil,
		"0":                                 nil,
		"2 ":                                nil,
		"1":                                 {0},
		"2":                                 {1},
		"111":                               {0, 0, 0},
		encodePlainly(long[1:]):             long[1:],
		encodePlainly(long):                 nil,
		strings.Repeat("1", MaxPartBytes):   make([]byte, MaxPartBytes),
		strings.Repeat("1", MaxPartBytes+1): nil,
		strings.Repeat("1", 1<<20):          nil,
	} {
		p, ok := ParseDataPart(7, text)
		if ok != (want != nil) || ok && (p.Offset != 7 || !bytes.Equal(p.Bytes, want)) {
			t.Errorf("ParseDataPart(7, %.20q…): %v, %t, want %v", text, p, ok, want)
		}
	}
}

// encodePlainly is base58 by division, for any length.
func encodePlainly(b []byte) (text string) {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	rest := slices.Clone(b)
	for slices.ContainsFunc(rest, func(v byte) bool { return v != 0 }) {
		carry := 0
		for i, v := range rest {
			carry = carry<<8 | int(v)
			rest[i], carry = byte(carry/58), carry%58
		}
		text = alphabet[carry:carry+1] + text
	}
	if back, err := base58.Decode(text); err != nil || !bytes.Equal(back, b) {
		panic("the text stands for other bytes")
	}
	return text
}

// Data of few lengths and few different bytes has filters match often enough.
func TestFiltersMatchAsTheirBytesOneByOne(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	random := func(most int) []byte {
		b := make([]byte, r.IntN(most+1))
		for i := range b {
			b[i] = byte(r.IntN(2))
		}
		return b
	}
	matched := 0
	for range 20_000 {
		data, f := random(6), DataFilter{}
		if r.IntN(3) == 0 {
			f.Size = Some(r.Uint64N(7))
		}
		want := !f.Size.Known || f.Size.Value == uint64(len(data))
		for range r.IntN(MaxDataParts + 1) {
			p := DataPart{r.Uint64N(8), append(random(2), 1)}
			if r.IntN(20) == 0 {
				p.Offset = ^uint64(0) - r.Uint64N(3) // with the length it would overflow
			}
			f.Parts = append(f.Parts, p)
			for i, b := range p.Bytes {
				at := p.Offset + uint64(i)
				want = want && at >= p.Offset && at < uint64(len(data)) && data[at] == b
			}
		}
		a := Account{Data: NewData(data)}
		if f.Match(&a) {
			t.Fatalf("seed %d: %+v takes unknown data", seed, f)
		}
		a.Known = FieldData
		if got := f.Match(&a); got != want {
			t.Fatalf("seed %d: %+v takes %v: %t, want %t", seed, f, data, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("seed %d: only %d of all match", seed, matched)
	}
}
