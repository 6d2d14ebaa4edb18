package ledger

import (
	"encoding/json"
	"errors"
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
	if err := json.Unmarshal([]byte(`{"Key":"0"}`), &got); !errors.Is(err, base58.Err) {
		t.Errorf("a bad key: err = %v, want base58.Err", err)
	}
}

func TestAMalformedKeyIsZero(t *testing.T) {
	const text = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5D0"
	key, keyErr := ParsePubkey(text)
	hash, hashErr := ParseHash(text)
	sig, sigErr := ParseSignature(text)
	if key != (Pubkey{}) || hash != (Hash{}) || sig != (Signature{}) {
		t.Errorf("got %x, %x and %x, want zeros", key, hash, sig)
	}
	for _, err := range []error{keyErr, hashErr, sigErr} {
		if !errors.Is(err, base58.Err) {
			t.Errorf("err = %v, want a base58.Err", err)
		}
	}
}
