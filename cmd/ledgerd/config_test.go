package main

import (
	"slices"
	"testing"
)

func TestSizeTakesUnits(t *testing.T) {
	tests := map[string]struct {
		want size
		ok   bool
	}{
		"1048576":              {1 << 20, true},
		"512MiB":               {512 << 20, true},
		"2GiB":                 {2 << 30, true},
		"3KiB":                 {3 << 10, true},
		"0":                    {},
		"-1":                   {},
		"2GB":                  {},
		"2 GiB":                {},
		"GiB":                  {},
		"1.5GiB":               {},
		"99999999999GiB":       {},
		"18446744073709551616": {},
		"":                     {},
	}
	for in, tt := range tests {
		var got size
		if err := got.UnmarshalText([]byte(in)); (err == nil) != tt.ok || got != tt.want {
			t.Errorf("size %q = %d, %v; want %d, ok %v", in, got, err, tt.want, tt.ok)
		}
	}
}

func TestPrefixesTakeAddressesAndNetworks(t *testing.T) {
	tests := map[string]struct {
		want []string
		ok   bool
	}{
		"10.0.0.0/8, ::1":  {[]string{"10.0.0.0/8", "::1/128"}, true},
		"10.1.2.3/8":       {[]string{"10.0.0.0/8"}, true},
		"::ffff:127.0.0.1": {[]string{"127.0.0.1/32"}, true},
		"":                 {nil, true},
		"localhost":        {nil, false},
		"10.0.0.0/33":      {nil, false},
	}
	for in, tt := range tests {
		var got prefixes
		err := got.UnmarshalText([]byte(in))
		var texts []string
		for _, p := range got {
			texts = append(texts, p.String())
		}
		if (err == nil) != tt.ok || tt.ok && !slices.Equal(texts, tt.want) {
			t.Errorf("prefixes %q = %v, %v; want %v, ok %v", in, texts, err, tt.want, tt.ok)
		}
	}
}
