package stream

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// keeper is the naive model of resume: it keeps every frame a level was ever told.
type keeper struct {
	frames []kept
	shown  map[string]told // of the accounts, as the level was told
	forkAt ledger.Opt[ledger.Slot]
}

type kept struct {
	token, full, plain string // the three forms; plain is empty where there is none
	seq                ledger.Seq

	numbered    bool // seq is its own, not the last one before it
	before, now told // the account; empty for markers
}

// take keeps frames of a subscriber of everything with tokens.
func (k *keeper) take(t testing.TB, level ledger.Commitment, frames []string) {
	t.Helper()
	for _, text := range frames {
		f := parse(t, text)
		one := kept{token: text, full: text, seq: f.Seq}
		switch f.Type {
		case "slot_end":
			k.forkAt.Known = false
		case "rollback":
			k.forkAt = ledger.Some(f.ToSlot)
		default:
			one.plain = text[:strings.Index(text, `,"slot":`)] + "}"
			// Above the processed level what a rollback restores may share numbers.
			one.numbered = level == ledger.Processed || k.forkAt != ledger.Some(f.Slot)
			one.full = text[:strings.Index(text, `,"token":`)] + "}"
			one.before, one.now = k.shown[f.Pubkey], f
			k.shown[f.Pubkey] = f
		}
		k.frames = append(k.frames, one)
	}
}

// listener is what one client asked for.
type listener struct {
	level             ledger.Commitment
	extended, tokens  bool
	pubkeys, programs []string // all empty: everything, or nothing if it is silent
	wallets           []string
	silent            bool
	from              ledger.Seq
}

func (l *listener) query() string {
	q := fmt.Sprintf("?extended=%t&tokens=%t&commitment=%s", l.extended, l.tokens, l.level)
	if l.silent {
		q += "&mode=none"
	}
	for name, list := range map[string][]string{"pubkeys": l.pubkeys, "programs": l.programs, "wallets": l.wallets} {
		if len(list) > 0 {
			q += "&" + name + "=" + strings.Join(list, ",")
		}
	}
	return q
}

// wants reports whether the client named the account, or what it belongs to.
func (l *listener) wants(f told) bool {
	return slices.Contains(l.pubkeys, f.Pubkey) || slices.Contains(l.wallets, f.Pubkey) ||
		slices.Contains(l.programs, f.Owner) || slices.Contains(l.wallets, f.Token.Owner)
}

// hears returns what of some frames the client is told.
func (l *listener) hears(frames []kept) (out []string) {
	everything := len(l.pubkeys)+len(l.programs)+len(l.wallets) == 0 && !l.silent
	for _, f := range frames {
		marker := f.now.Pubkey == ""
		switch {
		case marker && !l.extended || !marker && !everything && !l.wants(f.before) && !l.wants(f.now):
		case !l.extended:
			out = append(out, f.plain)
		case !l.tokens:
			out = append(out, f.full)
		default:
			out = append(out, f.token)
		}
	}
	return out
}

// after returns the frames after a seq: those with a later one, and those without a number
// of their own that carry this one.
func after(frames []kept, seq ledger.Seq) (out []kept) {
	for _, f := range frames {
		if f.seq > seq || f.seq == seq && !f.numbered {
			out = append(out, f)
		}
	}
	return out
}

func resumed(id string, from ledger.Seq) string {
	return fmt.Sprintf(`{"type":"resumed","id":%s,"from_seq":%d}`, id, from)
}

func anyListener(r *rand.Rand) *listener {
	l := &listener{level: ledger.Commitment(r.IntN(int(ledger.Commitments))), extended: r.IntN(2) == 0, tokens: r.IntN(2) == 0}
	if l.silent = r.IntN(8) == 0; !l.silent && r.IntN(3) > 0 {
		for range r.IntN(3) {
			l.pubkeys = append(l.pubkeys, key(r.IntN(8)).String())
		}
		for range r.IntN(2) {
			l.wallets = append(l.wallets, key(r.IntN(4)).String())
		}
		for range r.IntN(2) {
			l.programs = append(l.programs, []ledger.Pubkey{ledger.SystemProgram, programA, programB}[r.IntN(3)].String())
		}
	}
	return l
}

// Blocks, forks and statuses come in any order, several at once: at the processed level each is told to the letter, and at every level the frames fold to the
// ledger. Whoever comes back, at any frame, level, form and filter, before the first block too, is told what it missed,
// and then goes on live, without what it has seen if it was ahead: the same as from a model that keeps everything.
func TestWhoComesBackMissesNothing(t *testing.T) {
	answers := map[string]int{}
	seeds := ledgertest.Sample(24, 9, 3)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 5))
		limit := []int{0, 40 * updateBytes, 10 * updateBytes}[seed%3]
		var log *fakeHistory
		if seed%3 == 2 {
			log = &fakeHistory{}
		}
		inMemory(t, func(c *Config) {
			if c.RecentBytes = limit; log != nil {
				c.History = log
			}
		}, func(n *node) {
			n.hub.pastBytes = 10 * updateBytes
			n.script.bare = true
			n.client.Exempt = true // each connection has a budget of its own
			var references [ledger.Commitments]*client
			var model [ledger.Commitments]keeper
			var knows [ledger.Commitments]heard
			for level := range references {
				references[level] = n.dial("?extended=true&tokens=true&commitment=" + ledger.Commitment(level).String())
				model[level].shown = map[string]told{}
				knows[level].state = state{}
			}
			live := map[*client]*listener{}
			for step := range 40 {
				for range 4 {
					l := anyListener(r)
					k := &model[l.level]
					from := []ledger.Seq{0, 1, 2, 1<<64 - 1}[r.IntN(4)]
					if len(k.frames) > 0 && r.IntN(4) > 0 {
						from = k.frames[r.IntN(len(k.frames))].seq
					} else if len(k.frames) > 0 {
						from = k.frames[len(k.frames)-1].seq + ledger.Seq(r.IntN(20))
					}
					c, id := (*client)(nil), "null"
					if r.IntN(2) == 0 {
						c = n.dial(l.query() + fmt.Sprintf("&resume_from=%d", from))
					} else {
						c, id = n.dial(l.query()), "7"
						c.send(`{"type":"resume","id":7,"from_seq":%d}`, from)
					}
					answer, got := c.next(), c.settle()
					live[c] = l
					if strings.HasPrefix(answer, `{"type":"resync_required"`) && limit > 0 && log == nil {
						answers["resync"]++
						n.checkResync(n, l, k, from, id, answer)
						continue
					}
					answers["resumed"]++
					l.from = from
					if want := l.hears(after(k.frames, from)); answer != resumed(id, from) || !slices.Equal(got, want) {
						n.Fatalf("seed %d, step %d, %s from %d: answered %s\n got %q\nwant %q", seed, step, l.query(), from, answer, got, want)
					}
				}
				for range 1 + r.IntN(5) {
					n.script.tokenStep(r)
				}
				var toLetter []string
				for _, record := range n.script.staged {
					toLetter = append(toLetter, framesOf(record)...)
				}
				n.script.publish()
				var came [ledger.Commitments]int
				for level, c := range references {
					came[level] = len(model[level].frames)
					frames := c.settle()
					model[level].take(n, ledger.Commitment(level), frames)
					knows[level].fold(n, frames)
					knows[level].check(n, n.script.chain[n.script.levels[level]])
				}
				asTold := (&listener{extended: true}).hears(model[ledger.Processed].frames[came[ledger.Processed]:])
				ledgertest.Equal(n, asTold, toLetter, "seed %d, step %d: what was told at the processed level", seed, step)
				for c, l := range live {
					if got, want := c.settle(), l.hears(after(model[l.level].frames[came[l.level]:], l.from)); !slices.Equal(got, want) {
						n.Fatalf("seed %d, step %d, %s, live:\n got %q\nwant %q", seed, step, l.query(), got, want)
					}
					if r.IntN(10) == 0 {
						_ = c.conn.Close()
						delete(live, c)
					}
				}
			}
		})
	}
	if answers["resumed"] < 40*seeds || answers["resync"] < 8*seeds {
		t.Errorf("answers: %v", answers)
	}
}

// checkResync checks that who is sent away could not have been told all, and that the seq
// named as the oldest is one to go on from.
func (n *node) checkResync(t testing.TB, l *listener, k *keeper, from ledger.Seq, id, answer string) {
	t.Helper()
	a := parse(t, answer)
	n.hub.mu.Lock()
	newest := n.hub.positionLocked(l.level).seq
	n.hub.mu.Unlock()
	if a.text != fmt.Sprintf(`{"type":"resync_required","id":%s,"oldest_seq":%d,"newest_seq":%d}`, id, a.Oldest, newest) || from >= a.Oldest || a.Oldest > newest {
		t.Fatalf("from %d: answered %s, the newest is %d", from, answer, newest)
	}
	c := n.dial(l.query() + fmt.Sprintf("&resume_from=%d", a.Oldest))
	c.expect(resumed("null", a.Oldest))
	got, want := c.settle(), l.hears(after(k.frames, a.Oldest))
	if a.Oldest == newest && len(want) > len(got) {
		want = want[len(want)-len(got):] // of frames that carry the newest seq the oldest may be gone
	}
	ledgertest.Equal(t, got, want, "%s from the oldest, %d", l.query(), a.Oldest)
	_ = c.conn.Close()
}

// Followers that fall behind together share what their digests leave out, however far each has come.
func TestDigestsAtOneHeadShareWhatIsStale(t *testing.T) {
	s := staleness{turn: semaphore.NewWeighted(1)}
	at := func(total int64, newest []*emission) [][]bool {
		t.Helper()
		stale, err := s.at(t.Context(), total, newest)
		must(t, err)
		return stale
	}
	var emissions []*emission
	for n := range 6 {
		e := &emission{}
		for _, k := range []int{n % 3, 10 + n} {
			e.updates = append(e.updates, ledger.Update{Account: account(k, 1, programA)})
		}
		emissions = append(emissions, e)
	}
	whole := at(6, emissions)
	ledgertest.Equal(t, whole[:3], [][]bool{{true, false}, {true, false}, {true, false}}, "the first three, whose accounts change again")
	ledgertest.Equal(t, whole[3:], [][]bool{{false, false}, {false, false}, {false, false}}, "the others")
	part := at(6, emissions[2:])
	if ledgertest.Equal(t, part, whole[2:], "those of one that came further"); &part[0] != &whole[2] {
		t.Error("it was found out again")
	}
	ledgertest.Equal(t, at(5, emissions[:5])[2], []bool{false, false}, "an emission that was the newest of its account one before")
}
