package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// step tells lines of a story and says which chain each level is at after them.
type step struct {
	name   string
	tell   string // names of blocks; "slot:status" or "block:status" for statuses
	chains [3]string
}

// abandoned is what a branch does that is left, and comes back: it closes, opens again,
// hands to another program, and moves tokens.
var abandoned = &story{
	base: []*storyAccount{account("a", 100, systemProgram), account("z", 9, keyOf("P1")), account("nothing", 0, systemProgram)},
	blocks: named(
		&storyBlock{"10", 10, "9", []*storyAccount{account("a", 101, systemProgram), account("p", 50, keyOf("P1")), tokenAccount("tok", "w1", 5)}},
		&storyBlock{"11", 11, "10", []*storyAccount{account("a", 110, systemProgram), account("c", 5, systemProgram)}},
		&storyBlock{"12x", 12, "11", []*storyAccount{account("a", 120, systemProgram), account("d", 1, systemProgram), account("c", 0, systemProgram), account("p", 50, keyOf("P2")), tokenAccount("tok", "w2", 5)}},
		&storyBlock{"13", 13, "11", []*storyAccount{account("a", 130, systemProgram), account("e", 3, systemProgram)}},
		&storyBlock{"12y", 12, "11", []*storyAccount{account("a", 125, systemProgram), account("c", 6, systemProgram), account("f", 1, systemProgram)}},
		&storyBlock{"14", 14, "12y", []*storyAccount{account("f", 0, systemProgram), account("p", 51, keyOf("P1"))}},
		&storyBlock{"15", 15, "12x", []*storyAccount{account("a", 150, systemProgram), account("c", 7, systemProgram)}},
		&storyBlock{"16", 16, "15", []*storyAccount{account("a", 160, systemProgram), account("tok", 0, tokenProgram)}},
		&storyBlock{"17", 17, "16", []*storyAccount{account("d", 0, systemProgram), account("p", 50, keyOf("P1")), account("z", 9, keyOf("P1"))}},
		&storyBlock{"14z", 14, "13", []*storyAccount{account("a", 1, systemProgram)}},
		&storyBlock{"19", 19, "17", []*storyAccount{account("a", 190, systemProgram)}},
	),
}

// contested is a story in which statuses, not slots, choose the branch.
var contested = &story{
	base: []*storyAccount{account("a", 100, systemProgram)},
	blocks: named(
		&storyBlock{"20", 20, "19", []*storyAccount{account("a", 200, systemProgram)}},
		&storyBlock{"21x", 21, "20", []*storyAccount{account("a", 210, systemProgram), account("b", 1, systemProgram)}},
		&storyBlock{"22", 22, "21x", []*storyAccount{account("a", 220, systemProgram), account("b", 0, systemProgram)}},
		&storyBlock{"21y", 21, "20", []*storyAccount{account("a", 211, systemProgram), account("c", 2, systemProgram)}},
		&storyBlock{"23", 23, "22", []*storyAccount{account("a", 230, systemProgram)}},
		&storyBlock{"24", 24, "23", []*storyAccount{account("d", 4, systemProgram)}},
	),
}

func named(blocks ...*storyBlock) map[string]*storyBlock {
	m := map[string]*storyBlock{}
	for _, b := range blocks {
		m[b.name] = b
	}
	return m
}

func TestBranchesAreSeenTheSameEverywhere(t *testing.T) {
	tests := map[string]struct {
		story *story
		steps []step
	}{
		"abandoned": {abandoned, []step{
			{"the root is final", "10", [3]string{"10", "10", "10"}},
			{"a block", "11", [3]string{"10 11", "10", "10"}},
			{"another", "12x", [3]string{"10 11 12x", "10", "10"}},
			{"a confirmation", "11:confirmed", [3]string{"10 11 12x", "10 11", "10"}},
			{"the same again", "11:confirmed 12x", [3]string{"10 11 12x", "10 11", "10"}},
			{"a branch with a higher slot wins", "13", [3]string{"10 11 13", "10 11", "10"}},
			{"one with a lower slot waits, though the slot was taken before", "12y", [3]string{"10 11 13", "10 11", "10"}},
			{"until it grows", "14", [3]string{"10 11 12y 14", "10 11", "10"}},
			{"a dead tip leaves the highest branch", "14:dead", [3]string{"10 11 13", "10 11", "10"}},
			{"the first branch comes back", "15", [3]string{"10 11 12x 15", "10 11", "10"}},
			{"a block whose parent is not there waits", "17", [3]string{"10 11 12x 15", "10 11", "10"}},
			{"and follows it", "16", [3]string{"10 11 12x 15 16 17", "10 11", "10"}},
			{"confirmation of many", "17:confirmed", [3]string{"10 11 12x 15 16 17", "10 11 12x 15 16 17", "10"}},
			{"finality of some", "15:finalized", [3]string{"10 11 12x 15 16 17", "10 11 12x 15 16 17", "10 11 12x 15"}},
			{"what comes late is ignored", "14z 13 18:confirmed", [3]string{"10 11 12x 15 16 17", "10 11 12x 15 16 17", "10 11 12x 15"}},
			{"and all goes on", "19 19:finalized", [3]string{"10 11 12x 15 16 17 19", "10 11 12x 15 16 17 19", "10 11 12x 15 16 17 19"}},
		}},
		"contested": {contested, []step{
			{"the root is final", "20", [3]string{"20", "20", "20"}},
			{"a branch", "21x 22", [3]string{"20 21x 22", "20", "20"}},
			{"its rival waits", "21y", [3]string{"20 21x 22", "20", "20"}},
			{"until it is confirmed", "21y:confirmed", [3]string{"20 21y", "20 21y", "20"}},
			{"a confirmed block is orphaned by a finalized one", "23 22:finalized", [3]string{"20 21x 22 23", "20 21x 22", "20 21x 22"}},
			{"and all goes on", "24 24:finalized", [3]string{"20 21x 22 23 24", "20 21x 22 23 24", "20 21x 22 23 24"}},
		}},
	}
	for name, tt := range tests {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d shards", name, shards), func(t *testing.T) {
				t.Parallel()
				followStory(t, tt.story, tt.steps, shards)
			})
		}
	}
}

// followStory tells a story and looks at everything after each step.
func followStory(t *testing.T, s *story, steps []step, shards int) {
	pipe := newFeeder(t)
	first := s.chain(steps[0].tell)[0]
	if _, err := pipe.WriteString(jsonLine(map[string]any{"type": "accounts", "slot": first.slot - 1, "accounts": s.base}) + first.line(nil)); err != nil {
		t.Fatal(err)
	}
	r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+pipe.Name(), "--shards", strconv.Itoa(shards))
	a := dial(t, r)
	listening := &telling{story: s, news: map[string][]numbered{}}
	for level := range levels {
		listening.move(level, s.chain(steps[0].chains[level]))
	}
	pipe.tell(a, first.slot)
	literal, extended := a.listen(""), []*socket{a.listen("?extended=true"), a.listen("?extended=true&commitment=confirmed"), a.listen("?extended=true&commitment=finalized")}

	for i, st := range steps {
		if i > 0 {
			pipe.tell(a, first.slot, s.lines(st.tell)...)
		}
		for level, names := range st.chains {
			a.seesChain(s, levels[level], s.chain(names))
			frames := listening.move(level, s.chain(names))
			if level == 0 {
				compareFrames(t, st.name+": literal", literal.sync(), frames, func(f frame) string { return f.literal })
			}
			compareFrames(t, st.name+": extended "+levels[level], extended[level].sync(), frames, func(f frame) string { return f.extended })
		}
		if t.Failed() {
			t.Fatalf("failed at step %q", st.name)
		}
	}
	if code := r.stop(); code != exitOK {
		t.Errorf("exit code %d, want 0:\n%s", code, r.errs)
	}
}

// lines returns what a step tells.
func (s *story) lines(tell string) (lines []string) {
	for word := range strings.FieldsSeq(tell) {
		name, status, isStatus := strings.Cut(word, ":")
		b := s.blocks[name]
		switch {
		case !isStatus:
			lines = append(lines, b.line(s.blocks[b.parent]))
		case b != nil:
			lines = append(lines, statusLine(b.slot, status, b.name))
		default:
			slot, _ := strconv.ParseUint(name, 10, 64)
			lines = append(lines, statusLine(slot, status, ""))
		}
	}
	return lines
}

func compareFrames(t *testing.T, what string, got []string, frames []frame, form func(frame) string) {
	t.Helper()
	var want []string
	for _, f := range frames {
		if text := form(f); text != "" {
			want = append(want, text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// seesChain asks a level for everything there is, and for what is not there any more.
func (a *api) seesChain(s *story, level string, chain []*storyBlock) {
	a.Helper()
	query := "?commitment=" + level
	state := s.state(chain)
	a.seesBlocks(s, query, chain)
	for _, key := range s.allKeys() {
		if held := state[key]; held != nil {
			a.want("/account/"+key+query, "", held.record())
		} else {
			a.wantMissing("/account/"+key+query, "account ")
		}
	}
	lists := owners(state)
	// The system program also owns the mark of the test. Nobody knows of a file whether it shows all accounts.
	for _, program := range []string{tokenProgram, keyOf("P1"), keyOf("P2")} {
		list := lists[program]
		if path := "/accounts/program/" + program + query; len(list) > 0 {
			a.want(path, "accounts", programList{ProgramID: program, Accounts: list})
		} else {
			a.wantMissing(path, "")
		}
	}
	holdings := wallets(state)
	for _, wallet := range []string{keyOf("w1"), keyOf("w2")} {
		if path := "/account/" + wallet + "/tokens" + query; len(holdings[wallet]) > 0 {
			a.want(path, "accounts", tokenList{Pubkey: wallet, Tokens: holdings[wallet]})
		} else {
			a.wantMissing(path, "")
		}
	}
}

// seesBlocks asks for every slot and every transaction of the story.
func (a *api) seesBlocks(s *story, query string, chain []*storyBlock) {
	a.Helper()
	at := map[uint64]*storyBlock{}
	recent := recentRecord{}
	for i, b := range slices.Backward(chain) {
		at[b.slot] = b
		recent.Transactions = append(recent.Transactions, b.transaction())
		a.want("/transaction/"+signatureOf(b.name)+query, "", b.transaction())
		parent := b.slot - 1
		if i > 0 {
			parent = chain[i-1].slot
		}
		record := blockRecord{Slot: b.slot, Blockhash: keyOf(b.name), ParentSlot: parent, Timestamp: isoTime(storyTime(b.slot)), Transactions: 1}
		if i == len(chain)-1 {
			a.want("/blocks/latest"+query, "", record)
		}
		if got := a.ok(fmt.Sprintf("/blocks/%d%s", b.slot, query)).body; !strings.Contains(got, `"blockhash":"`+keyOf(b.name)+`"`) {
			a.Errorf("block %s: got %s", b.name, got)
		}
	}
	a.want("/transactions/recent"+query, "", recent)
	first, last := chain[0].slot, chain[len(chain)-1].slot
	for _, b := range s.blocks {
		path := fmt.Sprintf("/blocks/%d%s", b.slot, query)
		switch {
		case b.slot > last:
			a.wantMissing(path, "slot not yet produced")
		case at[b.slot] == nil && b.slot > first:
			a.wantMissing(path, "slot skipped")
		}
		if at[b.slot] != b {
			a.wantMissing("/transaction/"+signatureOf(b.name)+query, "")
		}
	}
}

func (b *storyBlock) transaction() *transactionRecord {
	success, fee := true, json.Number("5000")
	t := &transactionRecord{Signature: signatureOf(b.name), Slot: b.slot, Success: &success, Fee: &fee, Timestamp: isoTime(storyTime(b.slot))}
	for _, w := range b.writes {
		t.Accounts = append(t.Accounts, w.Pubkey)
	}
	return t
}
