package rpc

import (
	"encoding/json"
	"maps"
	"testing"
)

// FuzzMembers holds the members of an object against those that encoding/json finds: of a name that is there twice, the last.
func FuzzMembers(f *testing.F) {
	for _, text := range []string{``, `[]`, `"a"`, `{}`, ` { } `, `{"a":1}x`, `{"a":}`, "{\"a\" :\t[1,{\"b\":\"}\"}] , \"\\u0061\\\"\":\"\\\\\",\"a\":null}\n", `{"":{"":{}},"x":-1e5}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil {
			want = nil
		}
		got := make(map[string]json.RawMessage)
		for name, value := range members(text) {
			got[name] = value
		}
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}
