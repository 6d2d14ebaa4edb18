package nodejson

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger"
)

func TestRentEpochsOfProxiesAreRead(t *testing.T) {
	known := func(n uint64) ledger.Opt[Epoch] { return ledger.Some(Epoch(n)) }
	most, none := known(math.MaxUint64), ledger.Opt[Epoch]{}
	tests := map[string]struct {
		want ledger.Opt[Epoch]
		ok   bool
	}{
		"361":                    {known(361), true},
		"0":                      {known(0), true},
		"18446744073709551615":   {most, true},
		"18446744073709552000":   {most, true},
		"18446744073709551616":   {most, true},
		"1.8446744073709552e19":  {most, true},
		"1.8446744073709552E+19": {most, true},
		"null":                   {none, true},
		"18446744073709560000":   {},
		"1e19":                   {},
		"1.5":                    {},
		"-1":                     {},
		`"361"`:                  {},
		"true":                   {},
	}
	for text, tt := range tests {
		var a Account
		err := json.Unmarshal([]byte(`{"rentEpoch":`+text+`}`), &a)
		if (err == nil) != tt.ok || tt.ok && Optional(a.RentEpoch) != tt.want {
			t.Errorf("%s: got %v, err %v", text, a.RentEpoch, err)
		}
	}
}

func TestAccountDataIsBounded(t *testing.T) {
	data := new(DataDecoder)
	defer data.Close()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := base64.StdEncoding.EncodeToString(z.EncodeAll(make([]byte, maxDataBytes+1), nil))
	if _, err := data.decodeText(bomb, "base64+zstd"); err == nil || err.Error() != "data is not base64+zstd" {
		t.Errorf("packed: err = %v", err)
	}
	if _, err := data.decodeText(strings.Repeat("AAAA", maxDataBytes/3+1), "base64"); err != errDataTooLong {
		t.Errorf("plain: err = %v, want %v", err, errDataTooLong)
	}
}
