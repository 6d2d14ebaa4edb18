package main

import (
	"fmt"
	"slices"
	"strings"
)

// check compares what the frames added up to, over what REST listed once the follower had joined,
// with what REST lists at the end.
func (f *follower) check(base, end map[string]accountRecord) {
	f.Helper()
	got := map[string]accountRecord{}
	for key, a := range base {
		if !f.snapshot && f.wants(key, a) {
			got[key] = a
		}
	}
	for key, a := range f.accounts {
		got[key] = a
	}
	seen, wrong := 0, []string{}
	for key, want := range end {
		if !f.wants(key, want) {
			continue
		}
		if _, told := f.accounts[key]; told {
			seen++
		}
		is, ok := got[key]
		same := is.Lamports == want.Lamports && (f.literal || is.Owner == want.Owner && is.Executable == want.Executable)
		if !ok && !f.mayMiss || ok && !same {
			wrong = append(wrong, fmt.Sprintf("%s: folded %+v (there: %v), REST has %+v", key, is, ok, want))
		}
	}
	for key, is := range got {
		if _, there := end[key]; !there && is.Lamports != "0" {
			wrong = append(wrong, fmt.Sprintf("%s: folded %+v, REST has none", key, is))
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		f.Errorf("%s: %d accounts differ, such as\n%s", f.name, len(wrong), strings.Join(wrong[:min(len(wrong), 5)], "\n"))
	}
	if f.missing > 0 || f.repeated > 0 {
		f.Errorf("%s: %d numbers are missing, %d came twice", f.name, f.missing, f.repeated)
	}
	switch {
	case f.mayMiss || f.isLate(): // for all of this
	case seen == 0:
		f.Errorf("%s: it was told of no account that is there", f.name)
	case f.level == "processed" && !f.literal && !f.conflate && f.rollbacks == 0:
		f.Errorf("%s: nothing was undone while it listened", f.name)
	}
	f.Logf("%s: %d updates and %d rollbacks of %d accounts up to number %d; %d connections, %d kicks, %d resets, %d gaps, %d skipped",
		f.name, f.updates, f.rollbacks, len(f.accounts), f.seq, f.conns, f.kicks, f.resets, f.gaps, f.skipped)
}

// isFull reports whether the follower is told of every update of its level.
func (f *follower) isFull() bool {
	everything := len(f.programs)+len(f.pubkeys) == 0 || len(f.programs) == len(simPrograms)
	return everything && !f.literal && !f.conflate
}

// isLate reports whether most of the ledger was there when the follower began: the machine is
// slow, and it shows less than it should.
func (f *follower) isLate() bool { return 2*f.from > f.endSeq() }

// wants reports whether the follower asked for an account.
func (f *follower) wants(key string, a accountRecord) bool {
	if len(f.programs)+len(f.pubkeys) == 0 {
		return true
	}
	return slices.Contains(f.pubkeys, key) || slices.Contains(f.programs, a.Owner)
}
