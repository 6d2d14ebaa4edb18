package wal

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// model is a log, and what it should hold.
type model struct {
	*testing.T
	*rand.Rand
	memory  *vfstest.Memory // nil: the log is on the real disk, which no test crashes
	c       Config
	l       *Log
	commits [][]*ledger.Record
	next    ledger.Version
	tails   []uint64 // indexes of the segments from which the tail was cut
}

const brokenTail = "a part of a commit"

// TestALogHoldsWhatItsModelSays does random things with a log that begins with any record.
func TestALogHoldsWhatItsModelSays(t *testing.T) {
	for seed := range uint64(12) {
		m := &model{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), memory: vfstest.NewMemory(), next: 1 + ledger.Version(50*(seed%2))}
		m.c = config(m.memory)
		if seed == 0 {
			m.memory, m.c.FS, m.c.Dir = nil, vfs.Disk{}, t.TempDir()+"/log"
		}
		m.c.SegmentBytes = 3 << 10
		var err error
		m.l, err = Create(m.c, m.next, 42)
		must(t, err)
		must(t, m.l.Close())
		m.restart()
		if end := m.l.End(); end.Version() != m.next-1 || end.Slot() != 42 {
			t.Fatalf("an empty log ends at record %d, slot %d", end.Version(), end.Slot())
		}
		for range 60 {
			[]func(){m.commit, m.commit, m.commit, m.refused, m.prune, m.restart, m.read}[m.IntN(7)]()
			if m.l.first != nil {
				checkStats(t, m.l)
			}
		}
		must(t, m.l.Close())
		must(t, m.l.Close())
		ledgertest.ErrorIs(t, m.l.Commit(commitOf(m.next, 1, 1)), ErrClosed, "Commit after Close")
	}
}

// commit adds a commit, some of which are larger than a segment.
func (m *model) commit() {
	records := commitOf(m.next, 1+m.IntN(3), []int{1, 2, 3, 20}[m.IntN(4)])
	must(m, m.l.Commit(records))
	m.commits, m.next = append(m.commits, records), m.next+ledger.Version(len(records))
	if last, durable := reach(m.l); last != durable || last.version != m.next-1 {
		m.Fatalf("durable up to record %d of %d, want %d", durable.version, last.version, m.next-1)
	}
}

// refused adds nothing.
func (m *model) refused() {
	for name, records := range map[string][]*ledger.Record{
		"again": commitOf(m.next-1, 1, 1), "skips": commitOf(m.next+1, 1, 1), "a hole": {record(m.next, 1), record(m.next+2, 1)},
	} {
		if err := m.l.Commit(records); err == nil || errors.Is(err, ErrFailed) || errors.Is(err, ErrNoSpace) {
			m.Fatalf("%s: Commit: %v, want a refusal", name, err)
		}
	}
	must(m, m.l.Commit(nil))
}

// segments returns the segments, of which only the newest may be without a record.
func (m *model) segments() []segment {
	s, err := surveyLog(m.c.FS, m.c.Dir, nil)
	must(m, errors.Join(err, s.damage))
	for i, g := range s.segments[1:] {
		if g.first <= s.segments[i].first {
			m.Fatalf("segment %d holds no record", s.segments[i].index)
		}
	}
	return s.segments
}

// prune takes away the segments before the one that holds a record.
func (m *model) prune() {
	below := m.next + 2 - min(m.next+2, ledger.Version(m.IntN(1+m.IntN(30))))
	begun := m.l.file != nil
	must(m, m.l.Prune(below))
	segments := m.segments()
	first := segments[0].first
	held := slices.DeleteFunc(slices.Clone(m.commits), func(c []*ledger.Record) bool { return c[0].Version < first })
	if len(held) < len(m.commits) && first > below || begun && len(segments) > 1 && segments[1].first <= below {
		m.Fatalf("Prune(%d) left %d segments, which begin with record %d", below, len(segments), first)
	}
	m.commits = held
	m.tails = slices.DeleteFunc(m.tails, func(index uint64) bool { return index < segments[0].index })
}

// restart closes the log, or has a crash end it, maybe in the middle of a commit, and opens it again.
func (m *model) restart() {
	torn := false
	if m.memory == nil || m.IntN(2) == 0 {
		must(m, m.l.Close())
	} else {
		m.memory = m.memory.Crash(m.Float64(), m.Uint64())
		m.c.FS = m.memory
		if torn = m.l.file != nil && m.l.newestLocked().size > headerBytes; torn {
			g := m.l.newestLocked()
			m.tails = append(m.tails, g.index)
			must(m, m.memory.Overwrite(g.name, g.size, []byte(brokenTail)))
		}
	}
	l, got := openUnsettled(m, m.c)
	wantCommits(m, "after a restart", got, m.commits)
	if end := l.End(); end.Torn() != torn || end.Version() != m.next-1 || !torn && end.durable != end.position && m.memory == nil {
		m.Fatalf("the end is %v, durable up to %d, want record %d, torn %v", end, end.durable, m.next-1, torn)
	}
	m.l = l
	if torn || m.IntN(2) == 0 {
		must(m, m.l.Settle())
	}
	kept := ""
	names, err := m.c.FS.List(m.c.Dir)
	must(m, err)
	for _, name := range names {
		if strings.HasSuffix(name, brokenSuffix) {
			kept += string(contents(m, m.memory, m.c.Dir+"/"+name))
		}
	}
	ledgertest.Equal(m, kept, strings.Repeat(brokenTail, len(m.tails)), "the tails that are kept aside")
}

// read reads the log from any record on, be it there or not.
func (m *model) read() {
	from, want := m.next+3-min(m.next+3, ledger.Version(m.IntN(1+m.IntN(30)))), m.commits[len(m.commits):]
	if i := slices.IndexFunc(m.commits, func(c []*ledger.Record) bool { return c[len(c)-1].Version >= from }); i >= 0 {
		want = m.commits[i:]
	}
	got, _, err := replayAll(m.c.FS, m.c.Dir, from)
	if missing := from > m.next || from > 0 && from < m.segments()[0].first; missing {
		ledgertest.ErrorIs(m, err, ErrMissing, "reading from record %d", from)
		return
	}
	must(m, err)
	wantCommits(m, "from the middle", got, want)
}
