package apikey

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// TestFilesAreChecked reads files with one thing wrong each.
func TestFilesAreChecked(t *testing.T) {
	_, hash := New()
	key := func(name, tier, hash string) string {
		return fmt.Sprintf("{name: %q, tier: %q, hash: %q}", name, tier, hash)
	}
	for content, want := range map[string]string{
		"":                            "it is empty",
		"---\nnull\n":                 "it is empty",
		"keys: []":                    "",
		"tiers: {gold: {sockets: 3}}": "",
		"tiers: {a: {exempt: true}}\nkeys: [" + key("x", "a", hash) + "]": "",
		"tiers: {a: {speed: 3}}":                                                             "line 1: field speed not found",
		"keys: 3":                                                                            "line 1",
		"tiers: {}\n---\ntiers: {}":                                                          "more than one YAML document",
		"tiers: {a b: {}}":                                                                   `tier "a b"`,
		"tiers: {a: {requests_per_minute: 0x64}}":                                            "line 1: a limit is a whole number",
		"tiers: {a: {requests_per_minute: 1_000}}":                                           "line 1: a limit is a whole number",
		"tiers: {a: {requests_per_minute: 08, sockets: -1}}":                                 "limits are from 0",
		"tiers: {a: {requests_per_minute: -1}}":                                              "limits are from 0",
		"tiers: {a: {requests_per_hour: 99999999}}":                                          "limits are from 0",
		"tiers: {a: {sockets: 0.5}}":                                                         "line 1: a limit is a whole number",
		"tiers: {a: {exempt: true, sockets: 1}}":                                             "is exempt, and has limits",
		"keys: [" + key("x", "a", hash) + "]":                                                `key "x": there is no tier "a"`,
		"tiers: {a: {}}\nkeys: [" + key("", "a", hash) + "]":                                 `key "": a name`,
		"tiers: {a: {}}\nkeys: [" + key("x", "a", "sha256:00") + "]":                         "not of the form sha256:HEX",
		"tiers: {a: {}}\nkeys: [" + key("x", "a", hash+"00") + "]":                           "not of the form sha256:HEX",
		"tiers: {a: {}}\nkeys: [" + key("x", "a", strings.TrimPrefix(hash, "sha256:")) + "]": "not of the form sha256:HEX",
		"tiers: {a: {}}\nkeys: [" + key("x", "a", hash) + "," + key("x", "a", "sha256:"+strings.Repeat("0", 64)) + "]": "there twice",
		"tiers: {a: {}}\nkeys: [" + key("x", "a", hash) + "," + key("y", "a", hash) + "]":                              "has the hash of another one",
	} {
		if _, err := Parse([]byte(content)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
}

// TestKeysFollowTheFile loads newer files: a key that stays goes on with what it has counted, in another tier too; one that is gone is revoked.
func TestKeysFollowTheFile(t *testing.T) {
	now := time.Now()
	r := NewRing(Tier{PerMinute: 2, PerHour: 100}, now)
	ours, ourHash := New()
	others, otherHash := New()
	if ours == others || !strings.HasPrefix(ours, "ledgerd_") || len(ours) < 40 {
		t.Fatalf("keys %q and %q", ours, others)
	}
	load := func(tiers string, entries ...string) {
		t.Helper()
		f, err := Parse([]byte("tiers: {" + tiers + "}\nkeys: [" + strings.Join(entries, ", ") + "]"))
		ledgertest.Must(t, err)
		r.Load(f)
	}
	entry := func(name, tier, hash string) string {
		return fmt.Sprintf("{name: %s, tier: %s, hash: %q}", name, tier, hash)
	}
	load("usual: {}, gold: {requests_per_minute: 4, sockets: 7}", entry("us", "usual", ourHash), entry("them", "gold", otherHash))
	us, them := r.Find([]byte(ours)), r.Find([]byte(others))
	if us == nil || them == nil || us == them || r.Find(nil) != nil || r.Find([]byte(ours+"x")) != nil {
		t.Fatal("the keys are not told apart")
	}
	if c := them.Client(); c.Exempt || c.Sockets != 7 || c.Key == us.Client().Key {
		t.Errorf("the client of a key: %v", c)
	}
	asks := func(k *Key, allowed bool, remaining int) {
		t.Helper()
		if a := k.Take(1, now.Add(time.Second)); a.Allowed != allowed || a.Remaining != remaining {
			t.Errorf("%v with %d left, want %v with %d", a.Allowed, a.Remaining, allowed, remaining)
		}
	}
	asks(us, true, 1)
	asks(us, true, 0)
	asks(us, false, 0)
	asks(them, true, 3)

	load("gold: {requests_per_minute: 4}", entry("us", "gold", ourHash))
	if r.Find([]byte(ours)) != us || r.Find([]byte(others)) != nil {
		t.Error("the newer file was not taken over")
	}
	if us.Client().Revoked.Load() || !them.Client().Revoked.Load() {
		t.Error("the key that is gone is not revoked, or the other one is")
	}
	asks(us, true, 1)
	load("all: {exempt: true}", entry("us", "all", ourHash))
	for range 10 {
		if a := us.Take(1, now); !a.Allowed || a.Limit != 0 {
			t.Errorf("exempt: %v", a)
		}
	}
	var metrics bytes.Buffer
	r.Write(&metrics)
	for _, line := range []string{`ledgerd_api_keys{tier="all"} 1`, `ledgerd_api_key_requests_total{tier="all"} 10`, "ledgerd_api_key_unknown_total 3"} {
		ledgertest.Contains(t, metrics.String(), line+"\n", "the metrics")
	}
}
