package ledger

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/ledger/recorded"
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
	votes, others := 0, 0
	err := filepath.WalkDir(recorded.Path(t, "blocks"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, ".json") {
			return err
		}
		for keys, calls := range recordedTransactions(t, path) {
			tx := Transaction{}
			for _, k := range strings.Split(keys, " ") {
				p, err := ParsePubkey(k)
				if err != nil {
					t.Fatal(err)
				}
				tx.Accounts = append(tx.Accounts, p)
			}
			vote := calls == VoteProgram.String()
			if tx.IsVote() != vote {
				t.Errorf("%s: a transaction that calls %s: IsVote = %v", path, calls, !vote)
			}
			if vote {
				votes++
			} else {
				others++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if votes == 0 || others == 0 {
		t.Errorf("%d votes and %d other transactions tell nothing", votes, others)
	}
}

// recordedTransactions returns, by the accounts of each transaction of a file, what it calls.
func recordedTransactions(t *testing.T, path string) map[string]string {
	t.Helper()
	if !strings.HasSuffix(path, ".json") && !strings.HasSuffix(path, ".json.gz") {
		return nil
	}
	type block struct {
		Transactions []struct {
			Transaction json.RawMessage
		}
	}
	var file struct {
		Result *block
		block
	}
	if json.NewDecoder(bytes.NewReader(recorded.Read(t, path))).Decode(&file) != nil {
		return nil
	}
	b := &file.block
	if file.Result != nil {
		b = file.Result
	}
	found := make(map[string]string)
	for _, tx := range b.Transactions {
		var whole struct {
			Message struct {
				AccountKeys  []string
				Instructions []struct{ ProgramIDIndex int }
			}
		}
		if json.Unmarshal(tx.Transaction, &whole) != nil || len(whole.Message.AccountKeys) == 0 {
			continue // another encoding
		}
		var calls []string
		for _, i := range whole.Message.Instructions {
			if i.ProgramIDIndex >= len(whole.Message.AccountKeys) {
				calls = append(calls, "a loaded program")
				continue
			}
			calls = append(calls, whole.Message.AccountKeys[i.ProgramIDIndex])
		}
		found[strings.Join(whole.Message.AccountKeys, " ")] = strings.Join(calls, " ")
	}
	return found
}
