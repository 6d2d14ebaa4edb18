package rpc

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

var update = flag.Bool("update", false, "rewrite what is told in testdata/scenes")

// F21, F22, F25, F26, F27, F28, F29: TestScenes repeats the scenes in testdata/scenes. A scene has a fake node and a source of its own and a fake clock. A line is what is done, and the
// lines below it, with a "<", are all that the source then emits, and what is asked about it: go test -update writes them, and they are reviewed
// like code.
//
//	## NAME                      begins a scene
//	with OPTION...               has the source configured: options of its specification, parallel=N calls at once, or the longest pauses
//	each TEXT | TEXT...          repeats the scene, which has to come out the same, with each text in the place of every $
//	has PARENT: SLOTS            puts confirmed blocks on top of each other, as in 11 12-15; their hashes are made of their slots
//	lose SLOTS                   removes blocks
//	hash SLOT[/HASH]             has a block have another hash
//	nameless SLOT                has a block not say on which hash it builds
//	keeps SLOT [CODE]            has the node keep blocks from a slot on, and answer by a code about those below; 0 is all
//	confirmed SLOT, final SLOT   moves the newest slot of a level, back too
//	early ANSWER                 has the node call final what is confirmed, and answer so for 32 slots when it is asked for the final block
//	grow FROM TO                 adds a block each 400 ms from here on
//	pay SLOT LAMPORTS ACCOUNTS   has a block touch accounts, which have so many lamports after it
//	hold LAMPORTS ACCOUNTS       has the node answer about accounts: the vote program owns them
//	tokens LAMPORTS ACCOUNT      has it answer about one that holds tokens, with a delegate
//	transactions SLOT JSON       has a block show these
//	context SLOT                 has the node answer about accounts as of a slot; 0 is its newest
//	fault WHERE: ANSWER          answers calls of a method, or all, otherwise; WHERE may name a slot or a level, too, and "first N METHOD" is so many calls
//	no faults                    ends these
//	follow [SLOT[/HASH]]         runs the source, after a block that it holds
//	fill SLOT[/HASH] TO          has it fill a gap
//	fetch LEVEL ACCOUNTS         has it fetch accounts, in 5 s
//	slot CALLERS TIMES [LIMIT]   has callers ask for the newest slot so many times, one call after the other, which may take so long
//	wait DURATION                lets time pass
//	quiet                        has what is emitted from here on not be written
//	held ACCOUNTS                tells what is known of accounts by what came
//	asked ACCOUNTS               tells how often the node was asked for accounts
//	reach SLOT                   has the chain come to a slot after a filling
//	state, errors, trouble, log  tells of the source its figures, its errors by their kinds, its trouble, and what it logged
//	calls METHOD LEAST MOST      bounds the calls that came so far, of a method or of all
//
// An ANSWER is an error's code or "status STATUS", with a header's name and value behind it or none, "text TEXT", "result JSON", "hang up",
// "block SLOT/HASH on SLOT/HASH", "another SLOT on SLOT", which is a new block with each call, or "late DURATION ANSWER".
func TestScenes(t *testing.T) {
	ledgertest.Scenes(t, "testdata/scenes/*.txt", "## ", *update, func(t *testing.T, text string) string {
		return "## " + repeatScene(t, strings.TrimSpace(text)) + "\n"
	})
}

// repeatScene plays a scene with each of its texts, and returns it as it came out.
func repeatScene(t *testing.T, text string) (first string) {
	lines := strings.Split(text, "\n")
	options, texts := "", "$"
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "with "); ok {
			options = strings.ReplaceAll(rest, " ", "&")
		}
		if rest, ok := strings.CutPrefix(line, "each "); ok {
			texts = rest
		}
	}
	c, err := ParseSpec("http://node.example?" + options)
	must(t, err)
	ours := c.URL.Query()
	c.Parallel, _ = strconv.Atoi(ours.Get("parallel"))
	if ours.Has("longest") {
		c.Random = longest
	}
	for each := range strings.SplitSeq(texts, " | ") {
		var s scene
		config := c
		config.Logger = slog.New(slog.NewTextHandler(&s, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
		play(t, config, func(t *testing.T, n *fakeNode, source *Source) { s.play(t, n, source, lines, each) })
		if first == "" {
			first = s.text.String()
		} else if s.text.String() != first {
			t.Errorf("with %s: %s", each, diff.Diff("the first", []byte(first), each, []byte(s.text.String())))
		}
	}
	return first
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// scene is one while it is played.
type scene struct {
	*testing.T
	node   *fakeNode
	source *Source
	begun  time.Time
	faults []answer
	events []ledger.Event
	chain  map[ledger.Hash]bool // what blocks may build on; nil: the first one begins it
	told   []string             // since the last line
	quiet  bool

	mu   sync.Mutex // held but while time passes, and by what the source calls
	text strings.Builder
	log  strings.Builder
}

func (s *scene) play(t *testing.T, n *fakeNode, source *Source, lines []string, each string) {
	s.T, s.node, s.source, s.begun = t, n, source, time.Now()
	n.fault = func(c *fakeCall) bool {
		for _, fault := range s.faults {
			if fault(c) {
				return true
			}
		}
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, line := range lines {
		if strings.HasPrefix(line, "<") {
			continue
		}
		fmt.Fprintln(&s.text, line)
		if i > 0 {
			s.do(strings.ReplaceAll(line, "$", each))
		}
		s.mu.Unlock()
		synctest.Wait()
		s.mu.Lock()
		for _, told := range s.told {
			fmt.Fprintf(&s.text, "< %s\n", told)
		}
		s.told = nil
	}
	if strings.Contains(s.log.String()+s.text.String(), "secret") {
		t.Errorf("%s: a secret is told", lines[0])
	}
}

// tell notes what is to be written.
func (s *scene) tell(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// do does what a line says.
func (s *scene) do(line string) {
	n, words := s.node, append(strings.Fields(line), "", "")
	_, rest, _ := strings.Cut(line, " ")
	switch words[0] {
	case "", "#", "with", "each":
	case "has":
		n.add(number(words[1]), ranges(words[2:])...)
	case "lose":
		n.locked(func() {
			for _, slot := range ranges(words[1:]) {
				delete(n.blocks, slot)
			}
		})
	case "hash":
		b := resumePoint(words[1])
		n.locked(func() { n.blocks[b.Slot].hash = b.Blockhash })
	case "nameless":
		n.locked(func() { n.blocks[number(words[1])].previous = ledger.Hash{} })
	case "keeps":
		n.locked(func() {
			n.first = number(words[1])
			n.unkept, _ = strconv.Atoi(words[2])
		})
	case "confirmed":
		n.locked(func() { n.confirmed = number(words[1]) })
	case "final":
		n.locked(func() { n.finalized = number(words[1]) })
	case "early":
		n.locked(func() { s.faults = append(s.faults, early(answerOf(rest))) })
	case "grow":
		go n.goOn(number(words[1]), number(words[2]))
	case "pay":
		n.pay(number(words[1]), uint64(number(words[2])), keys(words[3:])...)
	case "hold":
		for _, key := range keys(words[2:]) {
			n.hold(key, uint64(number(words[1])), ledger.VoteProgram, nil)
		}
	case "transactions":
		_, text, _ := strings.Cut(rest, " ")
		n.locked(func() { n.blocks[number(words[1])].fields = `,"transactions":` + text })
	case "tokens":
		n.hold(keys(words[2:3])[0], uint64(number(words[1])), ledger.TokenProgram, holding(keyOf(7), keyOf(1), 5, ledger.Some(keyOf(8))))
	case "context":
		n.locked(func() { n.context = number(words[1]) })
	case "fault":
		n.locked(func() { s.faults = append(s.faults, s.faultOf(rest)) })
	case "no":
		n.locked(func() { s.faults = nil })
	case "follow", "fill":
		s.run(words)
	case "fetch":
		s.fetch(words[1], keys(words[2:]))
	case "slot":
		s.askSlot(words)
	case "wait":
		d, err := time.ParseDuration(words[1])
		must(s, err)
		s.mu.Unlock()
		time.Sleep(d)
		s.mu.Lock()
	case "reach":
		s.events = append(s.events, &ledger.Block{Slot: number(words[1])})
	case "held":
		state := stateAfter(s.events)
		for _, i := range ranges(words[1:]) {
			a := cmp.Or(state[keyOf(int(i))], new(ledger.Account))
			owner := "not known"
			if a.Unknown() == 0 {
				owner = a.Owner.String()
			}
			s.tell("%d: %d lamports, owner %s, as of %d, by a block %t", i, a.Lamports, owner, a.Provenance.Slot(), a.Provenance.ByBlock())
		}
	case "asked":
		for _, i := range ranges(words[1:]) {
			s.tell("%d: %d times", i, n.asked[keyOf(int(i))])
		}
	case "quiet":
		s.quiet = true
	case "state":
		g := s.source.Upstream()
		s.tell("%d blocks up to %d, node at %d, lag %d, %d gaps, %d repaired, connected %t",
			g.Blocks, g.SealedSlot, g.UpstreamSlot, g.LagSlots, g.Gaps, g.GapsRepaired, g.Connected)
		if g.Gap.Open() {
			s.tell("missing after %d up to %d, stuck %t", g.Gap.After, g.Gap.UpTo, g.Gap.Stuck)
		}
	case "errors":
		for kind, count := range s.source.Upstream().Errors {
			if count > 0 {
				s.tell("%d %v", count, upstream.Kind(kind))
			}
		}
	case "trouble":
		s.tell("%s", cmp.Or(s.source.Trouble(), "none"))
	case "log":
		for line := range strings.Lines(s.log.String()) {
			s.tell("%s", strings.TrimSpace(line))
		}
		s.log.Reset()
	case "calls":
		n.locked(func() {
			calls, least, most := n.calls[words[1]], int(number(words[2])), int(number(words[3]))
			if words[1] == "all" {
				calls = n.totalLocked()
			}
			if calls < least || calls > most {
				s.Errorf("%s: %d calls", line, calls)
			}
		})
	default:
		s.Fatalf("%s means nothing", line)
	}
}
