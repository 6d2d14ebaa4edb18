package apikey

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestFilesAreChecked reads each file of testdata, most of which have one thing wrong, and holds what is said of it to the last line, which go test
// -update writes.
func TestFilesAreChecked(t *testing.T) {
	ledgertest.Scenes(t, "testdata/files.txt", "== ", *update, func(t *testing.T, scene string) string {
		name, content, _ := strings.Cut(scene, "\n")
		content, _, _ = strings.Cut("\n"+content, "\n=> ")
		_, err := Parse([]byte(strings.TrimPrefix(content, "\n")))
		return fmt.Sprint("== ", name, content, "\n=> ", err, "\n\n")
	})
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
	if c := them.Client(netip.Addr{}); c.Exempt || c.Sockets != 7 || c.Key == us.Client(netip.Addr{}).Key {
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
	if us.Client(netip.Addr{}).Revoked.Load() || !them.Client(netip.Addr{}).Revoked.Load() {
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
