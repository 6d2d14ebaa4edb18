package sim

import (
	"strings"
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

func TestBadParametersGiveOneClearLine(t *testing.T) {
	for spec, want := range map[string]string{ // as written: what the error says
		"seed":                         "name=value",
		"seed=1, tps=1":                `no parameter " tps"`,
		"seed=1,seed=1":                "seed is given twice",
		"seed=":                        `seed="" must be a whole number`,
		"seed=+1":                      "whole number",
		"seed=1_000":                   "whole number",
		"seed=1.0":                     "whole number",
		"seed=18446744073709551616":    "whole number from 0 to 18446744073709551615",
		"seed=1\n":                     `seed="1\n" must be`,
		"accounts=99":                  "from 100 to 20000000",
		"tps=0":                        "from 1 to 1000000",
		"votes=100.1":                  "from 0 to 100",
		"votes=.1":                     "plain decimal",
		"votes=0.1.2":                  "plain decimal",
		"fail_rate=0.0000001":          "at most 6 digits",
		"fork_rate=0.250001":           "from 0 to 0.25",
		"slot_time=400":                `slot_time="400" must be 0`,
		"slot_time=-1s":                "slot_time",
		"slot_time=6s":                 "slot_time",
		"slot_time=1us":                "slot_time",
		"zipf=1":                       "above 1",
		"zipf=10.0001":                 "at most 10",
		"zipf=1.00001":                 "at most 4 digits",
		"zipf=on":                      "must be off",
		"slots=9223372036854775808":    "from 1 to",
		"tps=1000000,slot_time=1001ms": "more than 1000000 transactions a slot",
		"tps=100000,votes=100":         "more than 1000000 transactions a slot",
	} {
		s, err := Open(spec)
		if s != nil || err == nil {
			t.Errorf("Open(%q) gave %v, %v, want an error", spec, s, err)
		} else if msg := err.Error(); !strings.Contains(msg, want) || !strings.HasPrefix(msg, "sim: ") || strings.Contains(msg, "\n") {
			t.Errorf("Open(%q): err = %q, want one line with %q", spec, msg, want)
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
