package ledger

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ledgerd/engine/base58"
)

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
	for _, bad := range []string{`{"Key":"0"}`, `{"Hash":"0"}`, `{"Sig":"0"}`} {
		if err := json.Unmarshal([]byte(bad), &got); !errors.Is(err, base58.Err) {
			t.Errorf("%s: err = %v, want base58.Err", bad, err)
		}
	}
	for _, text := range []string{"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5D0", strings.Repeat("z", 42), strings.Repeat("z", 88)} {
		key, keyErr := ParsePubkey(text)
		hash, hashErr := ParseHash(text)
		sig, sigErr := ParseSignature(text)
		if key != (Pubkey{}) || hash != (Hash{}) || sig != (Signature{}) || keyErr == nil || hashErr == nil || sigErr == nil {
			t.Errorf("%s is %x, %x and %x, want errors and zeros", text, key, hash, sig)
		}
	}
}

func TestFilterTravelsInJSON(t *testing.T) {
	text, err := json.Marshal(NewFilter([]Pubkey{VoteProgram, TokenProgram, VoteProgram}, []Pubkey{NativeMint}))
	var f Filter
	if err != nil || json.Unmarshal(text, &f) != nil || len(f.Owners()) != 2 || !f.ListsOwner(VoteProgram) || f.ListsOwner(NativeMint) || !f.Lists(&NativeMint) {
		t.Errorf("%s is %v, %v", text, f, err)
	}
	for _, bad := range []string{`{}`, `{"owners":"0"}`, `{"accounts":"0"}`, `[]`} {
		if json.Unmarshal([]byte(bad), &f) == nil {
			t.Errorf("%s is a filter", bad)
		}
	}
}
