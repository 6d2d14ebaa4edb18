package sim

import (
	"strings"
	"testing"

	"ledgerd/engine/ledger/datatest"
)

// An entry of testdata/params.txt is a specification and its identity.
func TestParametersInOneFixedForm(t *testing.T) {
	for _, lines := range datatest.Entries(t, "params.txt") {
		info := open(t, strings.TrimPrefix(lines[0], "sim:")).Info()
		if "> "+info.Identity != lines[1] || info.Name != lines[0] || !info.Complete {
			t.Errorf("Open(%q): %+v, want identity\n%s", lines[0], info, lines[1])
		}
	}
}

func FuzzParams(f *testing.F) {
	f.Add("seed=7,accounts=1000000,slot_time=0")
	f.Add("zipf=1.5,votes=0.10,slots=5")
	f.Add("seed=18446744073709551615,slot_time=0.4s,fail_rate=0.000001,zipf=1.0001")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseParams(text)
		if err != nil {
			return
		}
		again, err := parseParams(p.String())
		if again.slots = p.slots; err != nil || again != p {
			t.Errorf("%q is %+v, its fixed form %q is %+v, %v", text, p, p.String(), again, err)
		}
	})
}
