package ledger

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestEventsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := genEvent(t)
		encoded := AppendEvent([]byte("before"), event)[len("before"):]
		got, err := DecodeEvent(encoded)
		if err != nil {
			t.Fatalf("DecodeEvent(%x): %v", encoded, err)
		}
		if !reflect.DeepEqual(got, event) {
			t.Fatalf("DecodeEvent(%x):\ngot  %+v\nwant %+v", encoded, got, event)
		}
		refusesOtherLengths(t, encoded, func(b []byte) error { _, err := DecodeEvent(b); return err })
	})
}

func TestRecordsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record := genRecord(t)
		encoded := AppendRecord(nil, record)
		got, err := DecodeRecord(encoded)
		if err != nil {
			t.Fatalf("DecodeRecord(%x): %v", encoded, err)
		}
		if !reflect.DeepEqual(got, record) {
			t.Fatalf("DecodeRecord(%x):\ngot  %+v\nwant %+v", encoded, got, record)
		}
		refusesOtherLengths(t, encoded, func(b []byte) error { _, err := DecodeRecord(b); return err })
	})
}

// refusesOtherLengths checks that no prefix of an encoding is one, nor the encoding with
// a byte more.
func refusesOtherLengths(t *rapid.T, encoded []byte, decode func([]byte) error) {
	cut := rapid.IntRange(0, len(encoded)-1).Draw(t, "cut")
	if err := decode(encoded[:cut]); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("first %d of %d bytes: err = %v, want ErrCorrupt", cut, len(encoded), err)
	}
	if err := decode(append(bytes.Clone(encoded), 0)); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a byte more: err = %v, want ErrCorrupt", err)
	}
}

func TestAccountsAndMintsComeBackOneAfterTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		account, mint := genAccount(t), genMint(t)
		rest := AppendMint(AppendAccount(nil, &account), &mint)

		gotAccount, rest, err := DecodeAccount(rest)
		if err != nil || !reflect.DeepEqual(gotAccount, account) {
			t.Fatalf("DecodeAccount: got %+v, %v, want %+v", gotAccount, err, account)
		}
		gotMint, rest, err := DecodeMint(rest)
		if err != nil || gotMint != mint {
			t.Fatalf("DecodeMint: got %+v, %v, want %+v", gotMint, err, mint)
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes left", len(rest))
		}
	})
}
