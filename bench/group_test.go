package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"ledgerd/bench/feed"
	"ledgerd/engine/ledger"
)

// framesOf returns the frames of a block, in the order of the ledger's indexes.
func framesOf(c feed.Config, slot ledger.Slot) (frames []string) {
	for index := range c.Indexes(slot) {
		frames = append(frames, frameOf(index, slot))
	}
	return frames
}

func frameOf(index int, slot ledger.Slot) string {
	return fmt.Sprintf(`{"type":"account_update","pubkey":"%s","lamports":%d,"timestamp":null}`, feed.Key(index), slot)
}

func pong(slot ledger.Slot) string {
	return fmt.Sprintf(`{"type":"pong","id":1,"slot":%d,"seq":1,"timestamp":null}`, slot)
}

// batch returns texts as a server frames them.
func batch(texts ...string) (b []byte) {
	for _, s := range texts {
		if b = append(b, 0x81, byte(len(s))); len(s) > 125 {
			b = append(b[:len(b)-1], 126, byte(len(s)>>8), byte(len(s)))
		}
		b = append(b, s...)
	}
	return b
}

// aMember returns a subscriber of a ledger of 10 accounts and 4 blocks of 4 updates, who names
// accounts or wants everything.
func aMember(t *testing.T, keys ...int) *groupMember {
	t.Helper()
	f, err := feed.New(io.Discard, feed.Config{Accounts: 10, Updates: 4})
	if err != nil {
		t.Fatal(err)
	}
	newest := f.Newest()
	for range 4 {
		if _, err := f.Block(); err != nil {
			t.Fatal(err)
		}
	}
	g := &group{ledger: f, sums: make(map[ledger.Slot]uint64)}
	m := &groupMember{group: g, slot: newest, checked: newest, answers: make(chan answer, 1)}
	for _, index := range keys {
		if m.keys == nil {
			m.keys = make(map[string]namedKey)
		}
		m.keys[feed.Key(index).String()] = namedKey{index, newest}
	}
	return m
}

// A figure of a run in which somebody was told too little or too much must not come about.
func TestWhoWantsEverythingNoticesWhatIsWrong(t *testing.T) {
	c := feed.Config{Accounts: 10, Updates: 4}
	first := feed.FirstSlot + 1
	one, two, three := framesOf(c, first), framesOf(c, first+1), framesOf(c, first+2)
	all := slices.Concat(one, two, three)
	tests := map[string]struct {
		frames []string
		want   string // part of the fault; "": none
	}{
		"all":                       {slices.Concat(all, []string{pong(first + 2)}), ""},
		"a frame is missing":        {slices.Concat(one, two[1:], three, []string{pong(first + 2)}), "frames, or with others"},
		"the last is missing":       {slices.Concat(one, two[:3], []string{pong(first + 1)}), "came with 3 of 4"},
		"a frame comes twice":       {slices.Concat(one, two[:1], two, three, []string{pong(first + 2)}), "came with 5 of 4"},
		"one for the other":         {slices.Concat(one, two[:1], two[:3], three, []string{pong(first + 2)}), "or with others"},
		"a block is missing":        {slices.Concat(one, three, []string{pong(first + 2)}), "comes after slot"},
		"the last block is missing": {slices.Concat(one, two, []string{pong(first + 2)}), "told up to"},
		"blocks are swapped":        {slices.Concat(two, one, three, []string{pong(first + 2)}), "comes after slot"},
		"something else":            {[]string{`{"type":"gap","from_seq":1,"to_seq":2}`, pong(first - 1)}, "instead of an update"},
	}
	for name, tt := range tests {
		for _, apart := range []bool{false, true} { // how frames come together does not matter
			m := aMember(t)
			if apart {
				for _, f := range tt.frames {
					m.hear(batch(f), 1)
				}
			} else {
				m.hear(batch(tt.frames...), len(tt.frames))
			}
			checkFault(t, name, m, tt.want)
		}
	}
}

// The race detector sees it when they are not.
func TestFramesAreTimedBeforeTheirPongIsTold(t *testing.T) {
	m := aMember(t)
	timed := m.group.time()
	frames := framesOf(feed.Config{Accounts: 10, Updates: 4}, feed.FirstSlot+1)
	var hearing sync.WaitGroup
	hearing.Go(func() { m.hear(batch(append(frames, pong(feed.FirstSlot+1))...), len(frames)+1) })
	<-m.answers
	if got := timed.latency.Count(); got != int64(len(frames)) {
		t.Errorf("%d of %d frames are timed", got, len(frames))
	}
	hearing.Wait()
}

func TestWhoNamesAccountsNoticesWhatIsWrong(t *testing.T) {
	// The blocks update 4 to 7, 8 to 1, 2 to 5, 6 to 9.
	first := feed.FirstSlot + 1
	five, one, again := frameOf(5, first), frameOf(1, first+1), frameOf(5, first+2)
	last := pong(first + 3)
	tests := map[string]struct {
		frames []string
		want   string
	}{
		"all":                 {[]string{five, one, again, last}, ""},
		"in two parts":        {[]string{five, one, pong(first + 1), again, last}, ""},
		"one is missing":      {[]string{five, again, last}, "2 frames came"},
		"one comes twice":     {[]string{five, five, one, again, last}, "does not belong"},
		"not asked for":       {[]string{frameOf(4, first), last}, "does not belong"},
		"not of the block":    {[]string{frameOf(1, first), last}, "does not belong"},
		"out of order":        {[]string{one, five, again, last}, "comes after slot"},
		"one behind the pong": {[]string{five, pong(first + 1), one, pong(first + 2)}, "1 frames came"},
	}
	for name, tt := range tests {
		m := aMember(t, 1, 5)
		for _, f := range tt.frames {
			if m.hear(batch(f), 1); strings.Contains(f, "pong") && f != tt.frames[len(tt.frames)-1] {
				<-m.answers
			}
		}
		checkFault(t, name, m, tt.want)
	}
}

func checkFault(t *testing.T, name string, m *groupMember, want string) {
	t.Helper()
	fault := (<-m.answers).fault
	if want == "" && fault != nil || want != "" && (fault == nil || !strings.Contains(fault.Error(), want)) {
		t.Errorf("%s: the fault is %v, want %q", name, fault, want)
	}
}

func TestEveryFrameIsTimed(t *testing.T) {
	m := aMember(t)
	c := m.group.ledger.Config()
	m.hear(batch(framesOf(c, feed.FirstSlot+1)...), 4) // not asked for
	timed := m.group.time()
	m.hear(batch(slices.Concat(framesOf(c, feed.FirstSlot+2), framesOf(c, feed.FirstSlot+3)[:3], []string{`{"type":"error"}`})...), 8)
	if got := timed.latency.Count(); got != 7 {
		t.Errorf("%d frames are timed, want 7", got)
	}
	if m.fault == nil {
		t.Error("an error of the server goes unnoticed")
	}
}
