package main

import (
	"slices"
	"sort"
	"testing"
)

// message is any frame of the server, as far as a follower needs it. Only extended updates have a seq.
type message struct {
	Type      string
	Slot, Seq uint64
	FromSeq   uint64 `json:"from_seq"`
	ToSlot    uint64 `json:"to_slot"`
	accountState
}

// accountState is an account in an update, or as REST lists it.
type accountState struct {
	Pubkey, Owner         string
	Lamports              uint64
	Executable            bool
	Commitment, Timestamp string // of an update
}

// place is a point of a ledger at which a node can stand.
type place struct{ slot, seq uint64 }

// heard is what is kept of an update, the end of a slot or a rollback. The slot of a rollback is that it goes back to.
type heard struct {
	kind string
	place
	account accountState // of an update
}

// folded is what the frames of one subscription to everything add up to. It outlives a connection: what comes after a resume goes into the
// same state.
type folded struct {
	known     bool // there is a number to go on behind
	from      uint64
	seq       uint64                  // the newest of any frame
	accounts  map[string]accountState // by pubkey; closed ones have 0 lamports
	runs      [][]heard               // all since from, if the updates have numbers; another run begins where it begins anew
	restoring bool                    // since a rollback or a resume, until the next number

	updates, rollbacks int

	// missing counts the numbers that were passed over, where they come without holes.
	missing uint64
	// repeated counts updates whose number had been told before. The restores after a rollback
	// may share the number of the frame before.
	repeated int
}

// anew forgets what was told. What was heard stays, to be compared.
func (t *folded) anew() {
	t.known, t.restoring, t.seq, t.accounts = false, false, 0, map[string]accountState{}
	t.runs = append(t.runs, nil)
}

// reach notes that everything up to a seq has been told. whole says that numbers come without holes.
func (t *folded) reach(seq uint64, whole bool) {
	if seq <= t.seq {
		return
	}
	if whole && t.known {
		t.missing += seq - t.seq
	}
	t.seq = seq
}

func (t *folded) update(m *message, whole bool) {
	t.updates++
	t.accounts[m.Pubkey] = m.accountState
	switch {
	case m.Seq == 0: // literal
	case m.Seq > t.seq:
		t.reach(m.Seq-1, whole)
		t.seq, t.restoring = m.Seq, false
	case m.Seq == t.seq && t.restoring:
	default:
		t.repeated++
	}
}

// hear keeps a frame. After a resume frames of the very seq may come again.
func (t *folded) hear(m *message) {
	run := &t.runs[len(t.runs)-1]
	h := heard{kind: m.Type, place: place{m.Slot, m.Seq}}
	switch m.Type {
	case "account_update":
		h.account = m.accountState
	case "rollback":
		h.slot = m.ToSlot
	}
	for i := len(*run) - 1; t.restoring && i >= 0 && (*run)[i].seq == m.Seq; i-- {
		if (*run)[i] == h {
			return
		}
	}
	*run = append(*run, h)
}

// ends returns whether the run ends a slot at a place.
func ends(run []heard, p place) bool {
	return slices.ContainsFunc(run, func(h heard) bool { return h.kind == "slot_end" && h.place == p })
}

// sameFrames compares what two clients were told after a number, as far as both were: the same frames under the same numbers, whoever was
// told them at once and whoever on coming back. It returns how many frames each was told.
func sameFrames(t testing.TB, name, otherName string, after uint64, run, other []heard) (n, otherN int) {
	t.Helper()
	behind := func(run []heard) []heard {
		return run[sort.Search(len(run), func(i int) bool { return run[i].seq > after }):]
	}
	run, other = behind(run), behind(other)
	for i := range min(len(run), len(other)) {
		if run[i] != other[i] {
			t.Errorf("%s: after number %d it is told %+v, %s %+v", name, after, run[i], otherName, other[i])
			break
		}
	}
	return len(run), len(other)
}
