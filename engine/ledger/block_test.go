package ledger

import (
	"testing"

	"ledgerd/engine/ledger/datatest"
)

func TestBlockWithoutVotes(t *testing.T) {
	key := func(n byte) Pubkey { return Pubkey{n} }
	tests := map[string]struct {
		accounts []Pubkey
		vote     bool
	}{
		"vote of old":                  {[]Pubkey{key(1), key(2), slotHashesSysvar, clockSysvar, VoteProgram}, true},
		"vote with a voter":            {[]Pubkey{key(1), key(2), key(3), VoteProgram}, true},
		"vote of now":                  {[]Pubkey{key(1), key(2), VoteProgram}, true},
		"vote with everything":         {[]Pubkey{key(1), key(2), key(3), VoteProgram, clockSysvar, slotHashesSysvar}, true},
		"new vote account":             {[]Pubkey{key(1), key(2), key(3), SystemProgram, VoteProgram}, false},
		"vote and a transfer":          {[]Pubkey{key(1), key(2), key(3), key(4), VoteProgram}, false},
		"a transfer":                   {[]Pubkey{key(1), key(2), SystemProgram}, false},
		"paid by the program's key":    {[]Pubkey{VoteProgram, key(1), key(2)}, false},
		"nothing but the vote program": {[]Pubkey{key(1), VoteProgram}, false},
		"none":                         {nil, false},
	}
	b := &Block{Slot: 5, TransactionCount: 50}
	want := 0
	for name, tt := range tests {
		tx := Transaction{Signature: Signature{byte(len(b.Transactions))}, Accounts: tt.accounts}
		if got := tx.IsVote(); got != tt.vote {
			t.Errorf("%s: IsVote = %v, want %v", name, got, tt.vote)
		}
		if !tt.vote {
			want++
		}
		b.AddTransaction(tx)
	}
	less := b.WithoutVotes()
	if len(less.Transactions) != want || less.TransactionCount != 50 || len(b.Transactions) != len(tests) {
		t.Errorf("%d transactions of %d are left, count %d, want %d and 50", len(less.Transactions), len(b.Transactions), less.TransactionCount, want)
	}
	for i := range less.Transactions {
		if x := &less.Transactions[i]; x.IsVote() || x.Index != uint32(i) || x.Slot != 5 {
			t.Errorf("transaction %d = %+v", i, x)
		}
	}
	if less.WithoutVotes() != less {
		t.Error("a block without votes is copied")
	}
}

// TestVotesOfRecordedBlocks holds IsVote against what the instructions of recorded transactions call.
func TestVotesOfRecordedBlocks(t *testing.T) {
	found := map[bool]int{}
	for _, name := range []string{"excerpt-mainnet-100000000.json", "excerpt-mainnet-154808473.json", "excerpt-mainnet-child-of-1021084.json"} {
		var block struct {
			Transactions []struct {
				Transaction struct {
					Message struct {
						AccountKeys  []Pubkey
						Instructions []struct{ ProgramIDIndex int }
					}
				}
			}
		}
		datatest.JSON(t, datatest.Path(t, "blocks/"+name), &block)
		for i := range block.Transactions {
			m := &block.Transactions[i].Transaction.Message
			vote := len(m.Instructions) == 1 && m.AccountKeys[m.Instructions[0].ProgramIDIndex] == VoteProgram
			if tx := (Transaction{Accounts: m.AccountKeys}); tx.IsVote() != vote {
				t.Errorf("%s: transaction %d: IsVote = %v", name, i, !vote)
			}
			found[vote]++
		}
	}
	if found[true] != 21 || found[false] != 5 {
		t.Errorf("%d votes and %d other transactions", found[true], found[false])
	}
}
