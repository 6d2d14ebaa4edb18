package geyser

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodetest"
	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

// F21, F25, F26, F27, F28, F29: TestScenes plays testdata/scenes.txt, which says how an entry is read.
func TestScenes(t *testing.T) {
	for _, lines := range datatest.Entries(t, "scenes.txt")[1:] {
		t.Run(strings.TrimPrefix(lines[0], "# "), func(t *testing.T) {
			end := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "> ") })
			lines, want := lines[1:end], strings.Join(lines[end:], "\n")
			after := regexp.MustCompile("(?m)^> after ([^:]*)").FindStringSubmatch(want)
			s := scenario{config: func(c *Config) { c.MessageBytes = sceneMessageBytes }}
			var err error
			s.most, err = time.ParseDuration(after[1])
			must(t, err)
			if options, given := strings.CutPrefix(lines[0], "with "); given {
				s.with(strings.Fields(options))
				lines = lines[1:]
			}
			var each []script
			var live script // in calls that ask for no slot
			for _, line := range lines {
				if told, isLive := strings.CutPrefix(line, "live: "); isLive {
					live = played(told)
				} else {
					each = append(each, played(line))
				}
			}
			s.script = func(c *call) error {
				if live != nil && !c.from().Known {
					return live(c)
				}
				return calls(each...)(c)
			}
			s.run(t)
			ledgertest.Equal(t, s.outcome(), want, "what comes")
		})
	}
}

const sceneMessageBytes = 1 << 20

// with sets the options of a scene.
func (s *scenario) with(options []string) {
	for _, option := range options {
		before := s.config
		set := func(change func(c *Config)) { s.config = func(c *Config) { before(c); change(c) } }
		switch option {
		case "no-transactions":
			set(func(c *Config) { c.NoTransactions = true })
		case "no-votes":
			set(func(c *Config) { c.SkipVotes = true })
		case "listed-accounts":
			set(func(c *Config) { c.Accounts = []ledger.Pubkey{keyOf(7)} })
		case "no-start":
			s.fresh = true
		case "long-waits":
			set(func(c *Config) { c.Random = func(n int64) int64 { return n - 1 } })
		case "two-nodes":
			set(func(c *Config) { c.Addresses = append(c.Addresses, "second.test:1") })
		default:
			s.fill = filler(option)
		}
	}
}

// filler returns what fills with the blocks of straight, but for what its name says.
func filler(name string) fill {
	tries := 0
	return func(after, upTo ledger.Slot, emit func(block) error) error {
		switch tries++; {
		case name == "filler-that-fails-twice" && tries < 3:
			return failure{upstream.Unavailable, 0}
		case name == "filler-that-gives-nothing-once" && tries == 1:
			return nil
		case name == "filler-that-wants-17s" && tries == 1:
			return fmt.Errorf("cannot fill: %w", failure{upstream.RateLimited, 17 * time.Second})
		case name == "filler-that-knows-no-104.1" && after == 104:
			return failure{upstream.WrongParent, 0}
		}
		return fillStraight(after, upTo, emit)
	}
}

// played returns what a node does in the call of a line.
func played(line string) script {
	line, failure, fails := strings.Cut(line, "fail ")
	return func(c *call) error {
		from, next := c.from().Value, []part(nil)
		for word := range strings.FieldsSeq(line) {
			wait, isWait := time.ParseDuration(word)
			switch {
			case word == "end":
				return c.send(next...)
			case word == "stays":
			case word == "pongs":
				return c.pong(next...)
			case word == "again" || isWait == nil:
				err := c.send(next...)
				if next = nil; err == nil && word == "again" {
					from, err = c.again()
				}
				if err != nil {
					return err
				}
				time.Sleep(wait)
			case strings.HasPrefix(word, "-"):
				next = replaced(next, toldBy(word[1:], from)[0])
			case strings.HasPrefix(word, "~"):
				next = replaced(next, toldBy("head@"+word[1:], from)[0], toldBy("misnamed@"+word[1:], from)...)
			case strings.HasPrefix(word, "+"):
				next = replaced(next, toldBy("head@"+word[1:], from)[0], toldBy("overcounted@"+word[1:], from)...)
			default:
				next = append(next, toldBy(word, from)...)
			}
		}
		if !fails {
			return stays(next...)(c)
		}
		name, text, _ := strings.Cut(failure, " ")
		var code codes.Code
		return cmp.Or(code.UnmarshalJSON([]byte(strconv.Quote(name))), c.send(next...), status.Error(code, text))
	}
}

// pong sends messages, and then an answer to each request.
func (c *call) pong(messages ...part) error {
	for request := new([]byte); ; messages = []part{part(nil).Bytes(9, nil)} {
		if err := cmp.Or(c.send(messages...), c.stream.RecvMsg(request)); err != nil {
			return err
		}
	}
}

// sceneStatuses are the words for them, in their order.
var sceneStatuses = []string{"processed", "confirmed", "finalized", "shred", "completed", "begin", "dead"}

// toldBy returns the messages of a word. from is what the client asked for last.
func toldBy(word string, from ledger.Slot) []part {
	what, of, _ := strings.Cut(word, "@")
	var b block
	first, last := ledger.Slot(0), ledger.Slot(0)
	_, _ = fmt.Sscanf(of, "%d-%d", &first, &last)
	b.slot, b.parent = first, first-1
	switch kind := slices.Index(sceneStatuses, what); {
	case kind >= 0:
		return []part{slotUpdate(first, yellowstone.SlotStatus(kind))}
	case what == "ping":
		return []part{nodetest.Ping()}
	case what == "garbage":
		return []part{nil, {0x12, 0x7f, 1}} // an empty message is none
	case what == "huge":
		return []part{make(part, sceneMessageBytes+1)}
	case what == "whole":
		return []part{accountUpdate(first, keyOf(7), ledger.VoteProgram, 1, 7)}
	case what == "transaction":
		return []part{b.transaction()}
	case what == "middle":
		return straight(first, last)[2:]
	case what == "frozen" && last == 0:
		return frozen(from, first, first)
	case what == "frozen":
		return frozen(first, last, last)
	case what == "other":
		b.fork = 1
		return []part{b.head()}
	case what == "head":
		return []part{b.head()}
	case what == "misnamed":
		wrong := b.block()
		wrong.ParentSlot--
		return []part{nodetest.HeadUpdate(wrong)}
	case what == "overcounted":
		wrong := b.block()
		wrong.AddTransaction(ledger.Transaction{})
		return []part{nodetest.HeadUpdate(wrong)}
	case what == "bare":
		return b.messages()[4:]
	}
	if n, _ := fmt.Sscanf(word, "%d-%d", &first, &last); n == 2 {
		return straight(first, last)
	}
	if n, _ := fmt.Sscanf(word, "%d.%d<%d.%d", &b.slot, &b.fork, &b.parent, &b.parentFork); n == 4 {
		return b.messages()
	}
	panic(fmt.Sprintf("%q says nothing", word))
}

// outcome tells what came of a scene: the blocks, where calls began, what the Filler was asked for, and figures that are not zero.
func (s *scenario) outcome() string {
	n := s.source.Upstream()
	lines := "> from " + strings.Join(s.begins, " ")
	tell := func(name, what string) {
		if what != "" {
			lines += "\n> " + name + " " + what
		}
	}
	tell("filled", strings.Join(s.asked, " "))
	tell("dead", s.of("dead"))
	if s.fresh {
		tell("confirmed", s.of("confirmed"))
		tell("finalized", s.of("finalized"))
	}
	figures := []string{fmt.Sprintf("%v: replays %d", s.most, n.Replays)}
	if s.fresh {
		figures = append(figures, fmt.Sprintf("connects %d, blocks %d, at %d of %d", n.Connects, n.Blocks, n.SealedSlot, n.UpstreamSlot))
	}
	if n.Gaps > 0 {
		figures = append(figures, fmt.Sprintf("gaps %d, %d repaired", n.Gaps, n.GapsRepaired))
	}
	if n.Node != "" {
		figures = append(figures, n.Node)
	}
	if n.Gap.Stuck {
		tell("says", s.source.Trouble())
	}
	for kind, errors := range n.Errors {
		if errors > 0 {
			figures = append(figures, fmt.Sprintf("%v %d", upstream.Kind(kind), errors))
		}
	}
	tell("after", strings.Join(figures, ", "))
	return lines + "\n> " + s.of("block")
}
