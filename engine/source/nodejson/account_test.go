package nodejson

import (
	"encoding/json"
	"math"
	"testing"
)

func TestRentEpochsOfProxiesAreRead(t *testing.T) {
	tests := map[string]struct {
		want uint64
		ok   bool
	}{
		"361":                    {361, true},
		"0":                      {0, true},
		"18446744073709551615":   {math.MaxUint64, true},
		"18446744073709552000":   {math.MaxUint64, true},
		"18446744073709551616":   {math.MaxUint64, true},
		"1.8446744073709552e19":  {math.MaxUint64, true},
		"1.8446744073709552E+19": {math.MaxUint64, true},
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
		if (err == nil) != tt.ok || tt.ok && uint64(*a.RentEpoch) != tt.want {
			t.Errorf("%s: got %v, err %v", text, a.RentEpoch, err)
		}
	}
	var a Account
	if err := json.Unmarshal([]byte(`{"rentEpoch":null}`), &a); err != nil || a.RentEpoch != nil {
		t.Errorf("null: got %v, err %v", a.RentEpoch, err)
	}
}
