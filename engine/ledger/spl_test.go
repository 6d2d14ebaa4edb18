package ledger

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strconv"
	"strings"
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

// TestTokenDataIsToldApart reads the rows of testdata/tokens.txt.
func TestTokenDataIsToldApart(t *testing.T) {
	programs := map[string]Pubkey{"token": TokenProgram, "token-2022": Token2022Program, "system": SystemProgram}
	for line := range strings.Lines(string(datatest.Read(t, "testdata/tokens.txt"))) {
		if row := strings.Split(line, " | "); len(row) == 4 {
			data := dataOf(t, strings.Fields(row[2]))
			if got, want := tokenKind(programs[strings.TrimSpace(row[1])], data), strings.TrimSpace(row[3]); got != want {
				t.Errorf("%s: %x is %s, want %s", row[0], data, got, want)
			}
		}
	}
}

// dataOf returns the data that words tell: that of a token account, of a mint or nothing, and then what is done to it. It is extended with a kind and
// the bytes of extensions, padded with zeros, cut to a length, or AT:=N sets a byte.
func dataOf(t *testing.T, words []string) (data []byte) {
	for _, word := range words {
		what, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch what {
		case "nothing":
		case "account":
			data = tokenData()
		case "mint":
			data = mintData()
		case "kind":
			data = extended(data, byte(n))
		case "pad":
			data = append(data, make([]byte, n)...)
		case "cut":
			data = data[:n]
		case "ext":
			data, _ = hex.AppendDecode(data, []byte(value))
		default:
			at, err := strconv.Atoi(strings.TrimSuffix(what, ":"))
			if err != nil {
				t.Fatalf("%q says nothing of data", word)
			}
			data[at] = byte(n)
		}
	}
	return data
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
