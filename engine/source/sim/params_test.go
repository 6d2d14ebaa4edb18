package sim

import (
	"testing"
)

func TestParametersInOneFixedForm(t *testing.T) {
	const rest = "accounts=10000,tps=200,votes=0.1,fail_rate=0.02,slot_time=400ms,fork_rate=0.02,skip_rate=0.05,finality=32,zipf=off"
	for spec, want := range map[string]string{ // as written: identity
		"":                  "sim:seed=1," + rest,
		"seed=7":            "sim:seed=7," + rest,
		"seed=007,slots=50": "sim:seed=7," + rest,
		"votes=0.10,tps=200,zipf=off,slot_time=0.4s": "sim:seed=1," + rest,
		"seed=18446744073709551615,accounts=100,tps=1,votes=100,fail_rate=1,slot_time=0,fork_rate=0.25,skip_rate=0.5,finality=0,zipf=1.0001": "sim:seed=18446744073709551615," +
			"accounts=100,tps=1,votes=100,fail_rate=1,slot_time=0,fork_rate=0.25,skip_rate=0.5,finality=0,zipf=1.0001",
		"accounts=20000000,tps=1000000,votes=0,fail_rate=0.000001,slot_time=1s,fork_rate=0,skip_rate=0,finality=1000,zipf=10": "sim:seed=1," +
			"accounts=20000000,tps=1000000,votes=0,fail_rate=0.000001,slot_time=1s,fork_rate=0,skip_rate=0,finality=1000,zipf=10",
	} {
		if info := open(t, spec).Info(); info.Identity != want || info.Name != "sim:"+spec || !info.Complete {
			t.Errorf("Open(%q): %+v, want identity\n%s", spec, info, want)
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
