package codec

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"ledgerd/engine/ledger"
)

// wireTransaction returns a transaction with one signer, two keys and one instruction;
// with the version 0 also one lookup of two writable and one readonly keys.
func wireTransaction(version int) []byte {
	b := append([]byte{1}, bytes.Repeat([]byte{0xaa}, 64)...)
	if version == 0 {
		b = append(b, 0x80)
	}
	b = append(b, 1, 0, 1, 2)
	b = append(b, bytes.Repeat([]byte{0xbb}, 2*32)...)
	b = append(b, bytes.Repeat([]byte{0xcc}, 32)...)
	b = append(b, 1 /* instruction */, 1, 2, 0, 1, 3, 7, 8, 9)
	if version == 0 {
		b = append(b, 1)
		b = append(b, bytes.Repeat([]byte{0xdd}, 32)...)
		b = append(b, 2, 5, 6, 1, 7)
	}
	return b
}

// versionOneTransaction returns a transaction of version 1 with one signer, two keys, a fee and a limit of compute units, and two
// instructions.
func versionOneTransaction() []byte {
	b := []byte{0x81, 1, 0, 1, 0b111, 0, 0, 0}
	b = append(b, bytes.Repeat([]byte{0xcc}, 32)...)
	b = append(b, 2, 2)
	b = append(b, bytes.Repeat([]byte{0xbb}, 2*32)...)
	b = append(b, make([]byte, 3*4)...) // config values
	b = append(b, 1, 2, 3, 0 /* second */, 1, 0, 0, 1)
	b = append(b, append([]byte{0, 1, 7, 8, 9}, make([]byte, 256)...)...)
	return append(b, bytes.Repeat([]byte{0xaa}, 64)...)
}

func TestTransactionsOfVersionOneAreRead(t *testing.T) {
	got, err := ParseTransaction(versionOneTransaction())
	if err != nil || got.Version != 1 || len(got.Signatures) != 1 || got.Signatures[0][63] != 0xaa || len(got.StaticKeys) != 2 || got.StaticKeys[1][31] != 0xbb {
		t.Errorf("%+v, %v", got, err)
	}
}

// F27: a transaction that is not well formed is refused.
func TestMalformedTransactionsAreRefused(t *testing.T) {
	const countAt, headerAt, keysAt, dataAt, lookupsAt = 0, 65, 68, 65 + 4 + 96 + 5, 65 + 5 + 96 + 9
	legacy, v0, v1 := wireTransaction(LegacyTransaction), wireTransaction(0), versionOneTransaction()
	with := func(b []byte, at int, v ...byte) []byte {
		return append(append(bytes.Clone(b[:at]), v...), b[at+1:]...)
	}
	type malformed struct {
		in   []byte
		want error
	}
	tests := map[string]malformed{
		"empty":                          {nil, ledger.ErrCorrupt},
		"trailing byte":                  {append(bytes.Clone(legacy), 0), ledger.ErrCorrupt},
		"v0 with a trailing byte":        {append(bytes.Clone(v0), 0), ledger.ErrCorrupt},
		"version 1 in front of another":  {append([]byte{0x81}, legacy...), ledger.ErrCorrupt},
		"version 1 in the message":       {with(v0, headerAt, 0x81), ErrTransactionVersion},
		"version 1 with a trailing byte": {append(bytes.Clone(v1), 0), ledger.ErrCorrupt},
		"version 1 with more signers":    {with(v1, 1, 2), ledger.ErrCorrupt},
		"version 1 with 255 keys":        {with(v1, 41, 255), ledger.ErrCorrupt},
		"version 2 in front":             {append([]byte{0x82}, legacy...), ErrTransactionVersion},
		"version 2 in the message":       {with(v0, headerAt, 0x82), ErrTransactionVersion},
		"no signature":                   {with(append([]byte{0}, legacy[headerAt:]...), 1, 0), ledger.ErrCorrupt},
		"more signatures than bytes":     {with(legacy, countAt, 0x7f), ledger.ErrCorrupt},
		"fewer signatures than required": {with(legacy, headerAt, 2), ledger.ErrCorrupt},
		"only readonly signers":          {with(legacy, headerAt+1, 1), ledger.ErrCorrupt},
		"more readonly keys than keys":   {with(legacy, headerAt+2, 2), ledger.ErrCorrupt},
		"count longer than needed":       {with(legacy, keysAt, 0x82, 0x00), ledger.ErrCorrupt},
		"count of four bytes":            {with(legacy, keysAt, 0x82, 0x80, 0x80, 0x00), ledger.ErrCorrupt},
		"count over 16 bits":             {with(legacy, keysAt, 0xff, 0xff, 0x04), ledger.ErrCorrupt},
		"65535 keys":                     {with(legacy, keysAt, 0xff, 0xff, 0x03), ledger.ErrCorrupt},
		"65535 lookups":                  {with(v0, lookupsAt, 0xff, 0xff, 0x03), ledger.ErrCorrupt},
		"65536 bytes of data":            {with(legacy, dataAt, append([]byte{0x80, 0x80, 0x04}, make([]byte, 1<<16-3)...)...), ledger.ErrCorrupt},
	}
	for n := range v0 {
		tests[fmt.Sprintf("cut to %d bytes", n)] = malformed{v0[:n], ledger.ErrCorrupt}
	}
	for n := range v1 {
		tests[fmt.Sprintf("version 1, cut to %d bytes", n)] = malformed{v1[:n], ledger.ErrCorrupt}
	}
	for name, tt := range tests {
		if got, err := ParseTransaction(tt.in); !errors.Is(err, tt.want) {
			t.Errorf("%s: ParseTransaction(%x) = %+v, %v, want %v", name, tt.in, got, err, tt.want)
		}
	}
}

func FuzzParseTransaction(f *testing.F) {
	f.Add(wireTransaction(LegacyTransaction))
	f.Add(wireTransaction(0))
	f.Add(versionOneTransaction())
	f.Add([]byte{0xff, 0xff, 0x03})
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := ParseTransaction(in)
		if err != nil {
			if !errors.Is(err, ledger.ErrCorrupt) && !errors.Is(err, ErrTransactionVersion) {
				t.Fatalf("ParseTransaction(%x): %v is of no known kind", in, err)
			}
			return
		}
		if n := 64*len(got.Signatures) + 32*len(got.StaticKeys); n > len(in) {
			t.Fatalf("ParseTransaction(%x) made %d bytes of %d", in, n, len(in))
		}
		if len(got.Signatures) == 0 || len(got.StaticKeys) < len(got.Signatures) {
			t.Fatalf("ParseTransaction(%x) = %+v: a signature without key", in, got)
		}
	})
}
