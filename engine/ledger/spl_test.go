package ledger

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"ledgerd/engine/ledger/datatest"
)

// decodedOption is how the published decoders of the token programs write an option.
type decodedOption[T any] struct {
	Option string `json:"__option"`
	Value  T      `json:"value"`
}

func (o decodedOption[T]) opt() Opt[T] { return Opt[T]{o.Value, o.Option == "Some"} }

func TestTokenFactsAgreeWithThePublishedDecoders(t *testing.T) {
	var rows []struct {
		Pubkey, Owner Pubkey
		Data          []byte
		Kind          string
		Decoded       struct { // the fields of all kinds
			Mint, Owner     Pubkey
			Amount          uint64 `json:",string"`
			Delegate        decodedOption[Pubkey]
			State           TokenState
			IsNative        decodedOption[string]
			DelegatedAmount uint64 `json:",string"`
			CloseAuthority  decodedOption[Pubkey]

			Supply   uint64 `json:",string"`
			Decimals uint8
		}
	}
	datatest.JSON(t, datatest.Path(t, "vectors/spl-token-decoded.json"), &rows)
	if len(rows) != 51 {
		t.Fatalf("%d rows, want 51", len(rows))
	}
	for i := range rows {
		row, decoded := &rows[i], &rows[i].Decoded
		var wantToken *TokenAccount
		var wantMint *Mint
		switch row.Kind {
		case "account":
			wantToken = &TokenAccount{
				Mint: decoded.Mint, Owner: decoded.Owner, Amount: decoded.Amount,
				Details: Some(TokenDetails{
					State: decoded.State, Delegate: decoded.Delegate.opt(),
					DelegatedAmount: decoded.DelegatedAmount, CloseAuthority: decoded.CloseAuthority.opt(),
				}),
			}
		case "mint":
			wantMint = &Mint{Decimals: decoded.Decimals, Supply: Some(decoded.Supply), Scaled: Some(false)}
		}
		token, mint := ParseTokenData(row.Owner, row.Data)
		if !reflect.DeepEqual(token, wantToken) || !reflect.DeepEqual(mint, wantMint) {
			t.Errorf("%s, a %s:\ngot  %+v, %+v\nwant %+v, %+v", row.Pubkey, row.Kind, token, mint, wantToken, wantMint)
		}
		if token != nil && token.IsNative() != decoded.IsNative.opt().Known {
			t.Errorf("%s: native %v", row.Pubkey, token.IsNative())
		}
	}
}

func tokenKind(program Pubkey, data []byte) string {
	switch token, mint := ParseTokenData(program, data); {
	case token != nil && mint != nil:
		return "both"
	case token != nil:
		return "account"
	case mint != nil && !mint.Scaled.Known:
		return "mint of unknown scale"
	case mint != nil && mint.Scaled.Value:
		return "scaled mint"
	case mint != nil:
		return "mint"
	}
	return "neither"
}

// tokenData is an initialized token account without options.
func tokenData() []byte {
	b := make([]byte, tokenAccountBytes)
	b[0], b[32], b[64], b[108] = 1, 2, 3, byte(TokenInitialized)
	return b
}

// mintData is an initialized mint of 6 decimals without authorities.
func mintData() []byte {
	b := make([]byte, mintBytes)
	b[36], b[44], b[45] = 9, 6, 1
	return b
}

// extended appends zeros up to the kind, the kind, and the extensions.
func extended(base []byte, kind byte, extensions ...byte) []byte {
	b := append(base, make([]byte, tokenAccountBytes-len(base))...)
	return append(append(b, kind), extensions...)
}

func set(b []byte, at int, v byte) []byte {
	b[at] = v
	return b
}

func TestTokenDataIsToldApart(t *testing.T) {
	scaled := binary.LittleEndian.AppendUint16([]byte{extensionScaledUIAmount, 0}, 4)
	scaled = append(scaled, 1, 2, 3, 4)
	toMultisig := make([]byte, multisigBytes-tokenAccountBytes-1)
	for name, tt := range map[string]struct {
		program Pubkey
		data    []byte
		want    string
	}{
		"account":                           {TokenProgram, tokenData(), "account"},
		"mint":                              {TokenProgram, mintData(), "mint"},
		"account of Token-2022":             {Token2022Program, tokenData(), "account"},
		"mint of Token-2022":                {Token2022Program, mintData(), "mint"},
		"account of another program":        {SystemProgram, tokenData(), "neither"},
		"no data":                           {TokenProgram, nil, "neither"},
		"account cut short":                 {TokenProgram, tokenData()[:164], "neither"},
		"account of Token-2022 cut short":   {Token2022Program, tokenData()[:164], "neither"},
		"extended account of Token":         {TokenProgram, extended(tokenData(), 2), "neither"},
		"extended mint of Token":            {TokenProgram, extended(mintData(), 1), "neither"},
		"extended account":                  {Token2022Program, extended(tokenData(), 2), "account"},
		"extended mint":                     {Token2022Program, extended(mintData(), 1), "mint"},
		"extended, no kind yet":             {Token2022Program, extended(mintData(), 0), "neither"},
		"extended, unknown kind":            {Token2022Program, extended(mintData(), 3), "neither"},
		"mint said to be an account":        {Token2022Program, extended(mintData(), 2), "neither"},
		"account said to be a mint":         {Token2022Program, extended(tokenData(), 1), "neither"},
		"mint with bytes before the kind":   {Token2022Program, set(extended(mintData(), 1), 100, 1), "neither"},
		"multisig":                          {TokenProgram, make([]byte, multisigBytes), "neither"},
		"multisig size, else an account":    {Token2022Program, extended(tokenData(), 2, toMultisig...), "neither"},
		"multisig size, else a mint":        {Token2022Program, extended(mintData(), 1, toMultisig...), "neither"},
		"one byte over multisig size":       {Token2022Program, extended(mintData(), 1, append(toMultisig, 0)...), "mint"},
		"account not initialized":           {TokenProgram, set(tokenData(), 108, 0), "neither"},
		"account frozen":                    {TokenProgram, set(tokenData(), 108, 2), "account"},
		"account of unknown state":          {TokenProgram, set(tokenData(), 108, 3), "neither"},
		"account with a bad delegate tag":   {TokenProgram, set(tokenData(), 72, 2), "neither"},
		"account with a bad native tag":     {TokenProgram, set(tokenData(), 109, 2), "neither"},
		"account with a bad closer tag":     {TokenProgram, set(tokenData(), 132, 1), "neither"},
		"mint not initialized":              {TokenProgram, set(mintData(), 45, 0), "neither"},
		"mint initialized twice":            {TokenProgram, set(mintData(), 45, 2), "neither"},
		"mint with a bad authority tag":     {TokenProgram, set(mintData(), 0, 2), "neither"},
		"mint with a bad freeze tag":        {TokenProgram, set(mintData(), 46, 2), "neither"},
		"mint that scales":                  {Token2022Program, extended(mintData(), 1, scaled...), "scaled mint"},
		"mint with interest":                {Token2022Program, extended(mintData(), 1, 10, 0, 0, 0), "scaled mint"},
		"mint with an unknown extension":    {Token2022Program, extended(mintData(), 1, 0xff, 0xff, 1, 0, 7), "mint"},
		"scaling after an unknown one":      {Token2022Program, extended(mintData(), 1, append([]byte{0xff, 0xff, 1, 0, 7}, scaled...)...), "scaled mint"},
		"scaling after the end":             {Token2022Program, extended(mintData(), 1, append([]byte{0, 0}, scaled...)...), "mint"},
		"scaling cut short":                 {Token2022Program, extended(mintData(), 1, scaled[:7]...), "mint of unknown scale"},
		"scaling before damage":             {Token2022Program, extended(mintData(), 1, append(scaled, 1, 0, 9, 0)...), "scaled mint"},
		"extension without length":          {Token2022Program, extended(mintData(), 1, 1, 0, 0), "mint of unknown scale"},
		"a byte left over":                  {Token2022Program, extended(mintData(), 1, 1), "mint"},
		"account with malformed extensions": {Token2022Program, extended(tokenData(), 2, 1, 0, 9, 0), "account"},
	} {
		if got := tokenKind(tt.program, tt.data); got != tt.want {
			t.Errorf("%s: %x is %s, want %s", name, tt.data, got, tt.want)
		}
	}
}

func TestUIAmountIsWrittenAsNodesWriteIt(t *testing.T) {
	for _, tt := range []struct {
		amount   uint64
		decimals uint8
		want     string
	}{
		{0, 0, "0"}, {0, 9, "0"}, {1, 0, "1"}, {10, 0, "10"}, {1500000, 6, "1.5"}, {1000000, 6, "1"},
		{1, 9, "0.000000001"}, {10, 9, "0.00000001"}, {999999999, 9, "0.999999999"}, {1000000001, 9, "1.000000001"},
		{18446744073709551615, 0, "18446744073709551615"}, {18446744073709551615, 19, "1.8446744073709551615"},
		{18446744073709551615, 20, "0.18446744073709551615"}, {100, 2, "1"}, {120, 2, "1.2"}, {5, 3, "0.005"},
		{1, 255, "0." + string(bytes.Repeat([]byte("0"), 254)) + "1"},
	} {
		if got := string(AppendUIAmount([]byte("="), tt.amount, tt.decimals)); got != "="+tt.want {
			t.Errorf("%d with %d decimals is %q, want %q", tt.amount, tt.decimals, got, "="+tt.want)
		}
	}
}

func FuzzTokenData(f *testing.F) {
	f.Add(false, tokenData())
	f.Add(false, mintData())
	f.Add(true, extended(tokenData(), 2, 7, 0, 0, 0))
	f.Add(true, extended(mintData(), 1, 25, 0, 1, 0, 9, 18, 0, 0, 0))
	f.Fuzz(func(t *testing.T, token2022 bool, data []byte) {
		program := TokenProgram
		if token2022 {
			program = Token2022Program
		}
		token, mint := ParseTokenData(program, data)
		if token != nil && mint != nil {
			t.Fatalf("%x is both", data)
		}
		if token != nil && (!token.Details.Known || !bytes.Equal(token.Mint[:], data[:32])) {
			t.Fatalf("%x: %+v", data, token)
		}
		if mint != nil && (!mint.Supply.Known || mint.Decimals != data[44]) {
			t.Fatalf("%x: %+v", data, mint)
		}
		// Whatever the older program holds to be a token account, the newer does too.
		if classic, _ := ParseTokenData(TokenProgram, data); classic != nil {
			if extended, _ := ParseTokenData(Token2022Program, data); extended == nil || *extended != *classic {
				t.Fatalf("%x: %+v and %+v", data, classic, extended)
			}
		}
	})
}
