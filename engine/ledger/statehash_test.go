package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
)

func TestStateHashCarriesAndWraps(t *testing.T) {
	const most = 1<<64 - 1
	for sum, from := range map[StateHash]StateHash{{0, 0, 1, 0}: {most, most, 0, 0}, {}: {most, most, most, most}} {
		h := from
		if h.Add(StateHash{1}); h != sum {
			t.Errorf("%v and 1 is %v, want %v", from, h, sum)
		}
		if h.Sub(StateHash{1}); h != from {
			t.Errorf("%v less 1 is %v, want %v", sum, h, from)
		}
	}
	if got, want := (StateHash{1, 2, 3, 4}).String(), "0000000000000004000000000000000300000000000000020000000000000001"; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
}

// TestStateTermsHashTheDocumentedBytes builds the bytes once more, from their description.
func TestStateTermsHashTheDocumentedBytes(t *testing.T) {
	key := Pubkey{1: 9, 31: 7}
	var b []byte
	u64 := func(v uint64) { b = binary.LittleEndian.AppendUint64(b, v) }
	hashed := func() (h StateHash) {
		sum := sha256.Sum256(b)
		for i := range h {
			h[i] = binary.LittleEndian.Uint64(sum[i*8:])
		}
		return h
	}

	a := Account{
		Pubkey: key, Owner: TokenProgram, Lamports: 5, RentEpoch: 6, Executable: true,
		Known: FieldsShown | FieldToken, Provenance: 77, FieldProvenance: &FieldProvenance{3},
	}
	b = append([]byte{1}, key[:]...)
	u64(5)
	b = append(append(b, 0b111), TokenProgram[:]...)
	b = append(b, 1)
	u64(6)
	if got, want := a.StateTerm(), hashed(); got != want {
		t.Errorf("account: %s, want %s", got, want)
	}

	a.Token = &TokenAccount{Mint: Pubkey{2}, Owner: Pubkey{3}, Amount: 10}
	b = append(append(b, a.Token.Mint[:]...), a.Token.Owner[:]...)
	u64(10)
	balance := len(b)
	b = append(b, 0)
	if got, want := a.StateTerm(), hashed(); got != want {
		t.Errorf("token balance: %s, want %s", got, want)
	}

	a.Token.Details = Some(TokenDetails{State: TokenFrozen, Delegate: Some(Pubkey{4}), DelegatedAmount: 11})
	b = append(b[:balance], 1, 2, 1)
	b = append(b, a.Token.Details.Value.Delegate.Value[:]...)
	u64(11)
	b = append(b, make([]byte, 33)...)
	if got, want := a.StateTerm(), hashed(); got != want {
		t.Errorf("token account: %s, want %s", got, want)
	}

	m := Mint{Decimals: 6, Supply: Some(uint64(12)), Scaled: Some(true), Provenance: 78}
	b = append([]byte{2}, key[:]...)
	b = append(b, 6, 1)
	u64(12)
	b = append(b, 1, 1)
	if got, want := m.StateTerm(key), hashed(); got != want {
		t.Errorf("mint: %s, want %s", got, want)
	}
}
