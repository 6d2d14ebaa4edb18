package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// step tells lines of a story.
type step struct {
	name string
	tell string // names of blocks; "slot:status" or "block:status" for statuses
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

// TestBranchesAreSeenTheSameEverywhere compares what REST answers at every level, and what sockets are sent, after each step
// with testdata/story: all answers after the first step, later those that changed.
func TestBranchesAreSeenTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		story *story
		steps []step
	}{
		"abandoned": {abandoned, []step{
			{"the root is final", "10"},
			{"a block", "11"},
			{"another", "12x"},
			{"a confirmation", "11:confirmed"},
			{"the same again", "11:confirmed 12x"},
			{"a branch with a higher slot wins", "13"},
			{"one with a lower slot waits, though the slot was taken before", "12y"},
			{"until it grows", "14"},
			{"a dead tip leaves the highest branch", "14:dead"},
			{"the first branch comes back", "15"},
			{"a block whose parent is not there waits", "17"},
			{"and follows it", "16"},
			{"confirmation of many", "17:confirmed"},
			{"finality of some", "15:finalized"},
			{"what comes late is ignored", "14z 13 18:confirmed"},
			{"and all goes on", "19 19:finalized"},
		}},
		"contested": {contested, []step{
			{"the root is final", "20"},
			{"a branch", "21x 22"},
			{"its rival waits", "21y"},
			{"until it is confirmed", "21y:confirmed"},
			{"a confirmed block is orphaned by a finalized one", "23 22:finalized"},
			{"and all goes on", "24 24:finalized"},
		}},
	} {
		for _, shards := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d shards", name, shards), func(t *testing.T) {
				t.Parallel()
				got := followStory(t, tt.story, tt.steps, shards)
				golden := filepath.Join("testdata", "story", name+".txt")
				if *update {
					must(t, os.WriteFile(golden, []byte(got), 0o600))
				}
				if want, err := os.ReadFile(golden); err != nil || got != string(want) {
					t.Errorf("%v; %s", err, firstDifference(got, string(want)))
				}
			})
		}
	}
}

// followStory tells a story and looks at everything after each step.
func followStory(t *testing.T, s *story, steps []step, shards int) string {
	pipe := newFeeder(t)
	first := s.blocks[steps[0].tell]
	_, err := pipe.WriteString(jsonLine(map[string]any{"type": "accounts", "slot": first.slot - 1, "accounts": s.base}) + first.line(nil))
	must(t, err)
	r := start(t, "--data-dir", t.TempDir(), "--source", "file:"+pipe.Name(), "--shards", strconv.Itoa(shards))
	a := dial(t, r)
	pipe.tell(a, first.slot)
	var sockets []*socket
	for _, query := range []string{"", "?extended=true", "?extended=true&commitment=confirmed", "?extended=true&commitment=finalized"} {
		sockets = append(sockets, a.listen(query))
	}
	var seen strings.Builder
	paths, names := s.paths()
	before := map[string]string{}
	for i, st := range steps {
		fmt.Fprintf(&seen, "\n# %s: %s\n", st.name, st.tell)
		if i > 0 {
			pipe.tell(a, first.slot, s.lines(st.tell)...)
		}
		for _, level := range levels {
			for _, path := range paths {
				path += "?commitment=" + level
				answer := a.get(path)
				now := fmt.Sprintf("%s: %d %s %s\n", path, answer.status, answer.header.Get("X-Ledger-Partial"), answer.body)
				if before[path] != now {
					before[path] = now
					seen.WriteString(names.Replace(now))
				}
			}
		}
		for _, socket := range sockets {
			for _, frame := range socket.sync() {
				fmt.Fprintf(&seen, "/ws/accounts%s: %s\n", socket.name, names.Replace(frame))
			}
		}
	}
	ledgertest.Equal(t, r.stop(), exitOK, "the exit code of what said\n%s", r.errs)
	return seen.String()
}
