package ledger

import (
	"bytes"
	"testing"
)

// TestDataGoesWithTheLamports tries every order of writes that tell data or do not, over every state before.
func TestDataGoesWithTheLamports(t *testing.T) {
	const told, silent, empty = "told", "", "empty"
	write := func(amount Lamports, data string) *AccountWrite {
		w := &AccountWrite{Pubkey: Pubkey{1}, Lamports: amount, Owner: Pubkey{2}, Known: FieldsShown}
		switch data {
		case told:
			w.SetData([]byte{byte(amount)}, &DataPrograms{all: true})
		case empty:
			w.SetData(nil, &DataPrograms{all: true})
		}
		return w
	}
	read := func(amount Lamports, data string) *AccountWrite {
		w := write(amount, data)
		w.ReadOnly = true
		return w
	}
	tests := map[string]struct {
		before *AccountWrite
		by     Provenance
		write  *AccountWrite
		p      Provenance
		known  bool
		data   []byte
	}{
		"first sight":                                {nil, 0, write(3, told), BlockProvenance(5), true, []byte{3}},
		"first sight of an account without data":     {nil, 0, write(3, empty), BlockProvenance(5), true, nil},
		"a block tells other data":                   {write(3, told), BlockProvenance(5), write(4, told), BlockProvenance(6), true, []byte{4}},
		"a block tells no data":                      {write(3, told), BlockProvenance(5), write(3, silent), BlockProvenance(6), false, nil},
		"a block only reads it":                      {write(3, told), BlockProvenance(5), read(3, silent), BlockProvenance(6), true, []byte{3}},
		"a block only reads it, with other lamports": {write(3, told), BlockProvenance(5), read(4, silent), BlockProvenance(6), false, nil},
		"a block only reads it, and tells its data":  {write(3, told), BlockProvenance(5), read(3, empty), BlockProvenance(6), true, nil},
		"the account is closed":                      {write(3, told), BlockProvenance(5), write(0, told), BlockProvenance(6), false, nil},
		"base state of before":                       {write(3, silent), BlockProvenance(5), write(3, told), BaseProvenance(4), false, nil},
		"base state of the block's slot":             {write(3, silent), BlockProvenance(5), write(3, told), BaseProvenance(5), true, []byte{3}},
		"the same, not of after the block":           {write(3, silent), BlockProvenance(5), write(4, told), BaseProvenance(5), false, nil},
		"base state does not override the block's":   {write(3, told), BlockProvenance(5), write(4, told), BaseProvenance(5), true, []byte{3}},
		"newer base state":                           {write(3, silent), BlockProvenance(5), write(4, told), BaseProvenance(6), true, []byte{4}},
		"newer base state without data":              {write(3, told), BaseProvenance(5), write(3, silent), BaseProvenance(6), false, nil},
	}
	for name, tt := range tests {
		var before *Account
		if tt.before != nil {
			before = Merge(nil, tt.before, tt.by)
		}
		got := Merge(before, tt.write, tt.p)
		if known := got.Known&FieldData != 0; known != tt.known || !bytes.Equal(got.Data.Bytes(), tt.data) || !known && got.Data != (Data{}) {
			t.Errorf("%s: data %x, known %v; want %x, %v", name, got.Data.Bytes(), known, tt.data, tt.known)
		}
		if got.FieldProvenance != nil && !tt.p.ByBlock() && tt.p.Slot() > tt.by.Slot() {
			t.Errorf("%s: the fields have provenances of their own: %v", name, *got.FieldProvenance)
		}
	}
}

// TestBlocksThatReadAnAccountMakeItNoNewer wants base state of between the last write and a block that read the account to count, also where the block
// told a field that was not known.
func TestBlocksThatReadAnAccountMakeItNoNewer(t *testing.T) {
	read := AccountWrite{Pubkey: Pubkey{1}, Lamports: 3, ReadOnly: true}
	token := read
	token.Known, token.Token = FieldToken, &TokenAccount{Mint: Pubkey{5}, Amount: 6}
	a := Merge(nil, &read, BlockProvenance(5))
	if got := Merge(a, &read, BlockProvenance(9)); got != a {
		t.Errorf("a block that tells nothing new made %+v of %+v", got, a)
	}
	first := Merge(a, &token, BlockProvenance(9))
	if first.Token == nil || Merge(first, &token, BlockProvenance(12)) != first {
		t.Errorf("a block told token facts: %+v, and a second one others", first)
	}
	base := AccountWrite{Pubkey: Pubkey{1}, Lamports: 3, Owner: Pubkey{2}, Known: FieldsShown}
	base.SetData([]byte{7}, &DataPrograms{all: true})
	got := Merge(a, &base, BaseProvenance(7))
	if got.Known&FieldData == 0 || got.Provenance != BaseProvenance(7) {
		t.Errorf("base state of after the last write tells %+v", got)
	}
	if got = Merge(got, &token, BlockProvenance(9)); got.Known&FieldData == 0 || got.Known&FieldToken == 0 {
		t.Errorf("a block that told token facts left %+v", got)
	}
}

// TestStateHashTellsDataApart wants a term of its own for every state of the data, and the one of before for accounts without.
func TestStateHashTellsDataApart(t *testing.T) {
	a := Account{Pubkey: Pubkey{1}, Lamports: 7, Owner: Pubkey{2}, Known: FieldsShown}
	const before = "fbc6798fae90b6d247eee4955c1d746d7a0810e5559fba4e154d2ead4205a55e"
	if got := a.StateTerm().String(); got != before {
		t.Errorf("term of an account without data = %s, want %s", got, before)
	}
	seen := map[StateHash]string{a.StateTerm(): "not known"}
	states := []*Account{&a}
	for name, data := range map[string][]byte{"empty": {}, "zero": {0}, "zeros": {0, 0}, "text": []byte("abc")} {
		b := a
		b.Known, b.Data = b.Known|FieldData, NewData(data)
		if other := seen[b.StateTerm()]; other != "" {
			t.Errorf("data %s has the term of data %s", name, other)
		}
		seen[b.StateTerm()] = name
		same := b
		same.Data = NewData(bytes.Clone(data))
		if !b.SameState(&same) || b.StateTerm() != same.StateTerm() {
			t.Errorf("data %s is not the same as a copy of it", name)
		}
		for _, o := range states {
			if b.SameState(o) || o.SameState(&b) {
				t.Errorf("data %s is the same state as %x", name, o.Data.Bytes())
			}
		}
		states = append(states, &b)
	}
}

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
