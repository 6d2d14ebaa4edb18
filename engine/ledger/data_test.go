package ledger

import "testing"

func TestDataProgramsAreReadAsWritten(t *testing.T) {
	a, b := Pubkey{1}, Pubkey{2}
	for text, want := range map[string]string{
		"none": "none", "all": "all", JoinKeys([]Pubkey{b, a, b}): JoinKeys([]Pubkey{a, b}),
	} {
		p, err := ParseDataPrograms(text)
		if err != nil || p.String() != want {
			t.Errorf("ParseDataPrograms(%q) = %v, %v, want %s", text, p, err, want)
		}
		if got := p.Keep(&a); got != (text != "none") {
			t.Errorf("with %q data of a listed program is kept: %v", text, got)
		}
		if got := p.Keep(&Pubkey{3}); got != (text == "all") {
			t.Errorf("with %q data of another program is kept: %v", text, got)
		}
	}
	for _, text := range []string{"", "some", "all,none", JoinKeys([]Pubkey{a}) + ","} {
		if p, err := ParseDataPrograms(text); err == nil {
			t.Errorf("ParseDataPrograms(%q) = %v without an error", text, p)
		}
	}
}
