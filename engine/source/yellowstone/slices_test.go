package yellowstone

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// accountMessage is a message about an account with 1 lamport.
func accountMessage(t *testing.T, owner ledger.Pubkey, data []byte) []byte {
	k := key(1)
	return written(t, fmt.Sprintf("account { account { pubkey: %q lamports: 1 owner: %q data: %q } }", k[:], owner[:], data))
}

func TestSlicesTellWhatAnAccountIs(t *testing.T) {
	mint := make([]byte, 400)
	mint[45], mint[44] = 1, 6
	mint[165] = 1
	scaled := slices.Clone(mint)
	binary.LittleEndian.PutUint16(scaled[166:], 25)
	holding := append(make([]byte, 165), 2, 0, 0, 0, 0)
	holding[0], holding[32], holding[64], holding[108] = 3, 4, 6, 1
	multisig := append(slices.Clone(holding), make([]byte, multisigBytes-len(holding))...)
	held, _ := ledger.ParseDataPrograms(ledger.JoinKeys([]ledger.Pubkey{ledger.TokenProgram, key(9)}))
	for name, data := range map[string][]byte{
		"nothing": nil, "little": make([]byte, 40), "a mint": mint[:82], "more than a mint": mint[:83], "less than a token account": holding[:164],
		"a token account": holding[:165], "an extended one": holding, "an extended one of 356 bytes": append(slices.Clone(multisig), 0),
		"a multisig that looks like one": multisig, "an extended mint": mint[:166], "a long mint": scaled, "a mint of 355 bytes": mint[:355],
	} {
		for _, owner := range []ledger.Pubkey{ledger.TokenProgram, ledger.Token2022Program, key(9)} {
			var sent []byte
			for _, s := range DataSlices() {
				if end := s.Offset + s.Length; uint64(len(data)) >= end {
					sent = append(sent, data[s.Offset:end]...)
				}
			}
			want := ledger.AccountWrite{Pubkey: key(1), Lamports: 1, Owner: owner, Known: ledger.FieldsShown}
			want.SetTokenFacts(data)
			var u Update
			if err := (Decoder{}).Decode(accountMessage(t, owner, data), &u); err != nil || !reflect.DeepEqual(u.Write, want) {
				t.Errorf("%s of %s, whole: %v, got %+v, want %+v", name, owner, err, u.Write, want)
			}
			want.SetData(data, held)
			if err := (Decoder{Data: held}).Decode(accountMessage(t, owner, data), &u); err != nil || !reflect.DeepEqual(u.Write, want) {
				t.Errorf("%s of %s, with data: %v, got %+v, want %+v", name, owner, err, u.Write, want)
			}
			want.Known, want.Data = want.Known&^ledger.FieldData, ledger.Data{}
			if want.Mint != nil && len(data) > holdingBytes {
				want.Mint.Scaled = ledger.Opt[bool]{} // the slices do not reach that far
			}
			err := Decoder{Sliced: true}.Decode(accountMessage(t, owner, sent), &u)
			if err != nil || !reflect.DeepEqual(u.Write, want) {
				t.Errorf("%s of %s: %v, got %+v, want %+v", name, owner, err, u.Write, want)
			}
		}
	}
	for _, n := range []int{1, 81, 84, 164, 169, 10 << 10} {
		var u Update
		ledgertest.ErrorIs(t, (Decoder{Sliced: true}).Decode(accountMessage(t, key(9), make([]byte, n)), &u), ErrNotSliced, "%d bytes", n)
	}
}
