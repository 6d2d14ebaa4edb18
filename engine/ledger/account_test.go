package ledger

import "testing"

func TestProvenanceOrdersBaseStateBeforeTheBlockOfItsSlot(t *testing.T) {
	order := []Provenance{BaseProvenance(0), BlockProvenance(0), BaseProvenance(1), BlockProvenance(1), BaseProvenance(7), BlockProvenance(7)}
	for i := 1; i < len(order); i++ {
		if order[i-1] >= order[i] {
			t.Errorf("%d is not before %d", order[i-1], order[i])
		}
	}
	if base, block := BaseProvenance(7), BlockProvenance(7); base.ByBlock() || !block.ByBlock() || base.Slot() != 7 || block.Slot() != 7 {
		t.Errorf("base state at 7 is %d, a block %d", base, block)
	}
}

func TestSameStateIgnoresProvenance(t *testing.T) {
	token := TokenAccount{Mint: Pubkey{1, 1}, Amount: 1}
	sameToken := token
	otherToken := TokenAccount{Mint: Pubkey{1, 1}, Amount: 2}
	base := Account{Lamports: 1, Owner: TokenProgram, Known: FieldsShown, Token: &token}
	for name, tt := range map[string]struct {
		change func(*Account)
		same   bool
	}{
		"nothing":           {func(*Account) {}, true},
		"provenance":        {func(a *Account) { a.Provenance, a.FieldProvenance = 9, &FieldProvenance{} }, true},
		"another copy":      {func(a *Account) { a.Token = &sameToken }, true},
		"token facts known": {func(a *Account) { a.Known |= FieldToken }, true},
		"lamports":          {func(a *Account) { a.Lamports = 2 }, false},
		"owner":             {func(a *Account) { a.Owner = VoteProgram }, false},
		"executable":        {func(a *Account) { a.Executable = true }, false},
		"rent epoch":        {func(a *Account) { a.RentEpoch = 1 }, false},
		"a field not known": {func(a *Account) { a.Known &^= FieldRentEpoch }, false},
		"amount":            {func(a *Account) { a.Token = &otherToken }, false},
		"no token facts":    {func(a *Account) { a.Token = nil }, false},
	} {
		b := base
		tt.change(&b)
		if base.SameState(&b) != tt.same || b.SameState(&base) != tt.same {
			t.Errorf("%s differs: SameState = %v, want %v", name, !tt.same, tt.same)
		}
	}
}
