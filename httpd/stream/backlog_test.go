package stream

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
)

// keeper is the naive model of resume: it keeps every frame a level was ever told.
type keeper struct {
	frames []kept
	owners map[string]string // of the accounts, as the level was told
	forkAt ledger.Opt[ledger.Slot]
}

type kept struct {
	full  string // the extended form
	plain string // the basic one; empty where there is none
	seq   ledger.Seq

	numbered      bool // seq is its own, not the last one before it
	pubkey        string
	before, owner string
}

// take keeps frames of an extended subscriber of everything.
func (k *keeper) take(t *testing.T, level ledger.Commitment, frames []string) {
	t.Helper()
	for _, text := range frames {
		f := parse(t, text)
		one := kept{full: text, seq: f.Seq}
		switch f.Type {
		case "slot_end":
			k.forkAt.Known = false
		case "rollback":
			k.forkAt = ledger.Some(f.ToSlot)
		default:
			one.plain = text[:strings.Index(text, `,"slot":`)] + "}"
			// Above the processed level what a rollback restores may share numbers.
			one.numbered = level == ledger.Processed || k.forkAt != ledger.Some(f.Slot)
			one.pubkey, one.before, one.owner = f.Pubkey, k.owners[f.Pubkey], f.Owner
			k.owners[f.Pubkey] = f.Owner
		}
		k.frames = append(k.frames, one)
	}
}

// listener is what one client asked for.
type listener struct {
	level             ledger.Commitment
	extended          bool
	pubkeys, programs []string // both empty: everything
	from              ledger.Seq
}

func (l *listener) query() string {
	q := fmt.Sprintf("?extended=%t&commitment=%s", l.extended, l.level)
	if len(l.pubkeys) > 0 {
		q += "&pubkeys=" + strings.Join(l.pubkeys, ",")
	}
	if len(l.programs) > 0 {
		q += "&programs=" + strings.Join(l.programs, ",")
	}
	return q
}

// hears returns what of some frames the client is told.
func (l *listener) hears(frames []kept) (out []string) {
	for _, f := range frames {
		switch {
		case f.pubkey == "" && !l.extended:
			continue
		case f.pubkey == "", len(l.pubkeys)+len(l.programs) == 0, slices.Contains(l.pubkeys, f.pubkey),
			f.owner != "" && slices.Contains(l.programs, f.owner), f.before != "" && slices.Contains(l.programs, f.before):
		default:
			continue
		}
		if l.extended {
			out = append(out, f.full)
		} else {
			out = append(out, f.plain)
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

func anyListener(r *rand.Rand) *listener {
	l := &listener{level: ledger.Commitment(r.IntN(int(ledger.Commitments))), extended: r.IntN(2) == 0}
	if r.IntN(3) > 0 {
		for range r.IntN(3) {
			l.pubkeys = append(l.pubkeys, key(r.IntN(8)).String())
		}
		for range r.IntN(2) {
			l.programs = append(l.programs, []ledger.Pubkey{ledger.SystemProgram, programA, programB}[r.IntN(3)].String())
		}
	}
	return l
}

// Whoever comes back, at any frame, level, form and filter, before the first block too, is told what it missed,
// and then goes on live, without what it has seen if it was ahead: the same as from a model that keeps everything.
func TestWhoComesBackMissesNothing(t *testing.T) {
	answers := map[string]int{}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 5))
		limit := []int{0, 40 * updateBytes, 10 * updateBytes}[seed%3]
		var log *fakeHistory
		if seed%3 == 2 {
			log = &fakeHistory{}
		}
		n := serve(t, func(c *Config) {
			if c.RecentBytes = limit; log != nil {
				c.History = log
			}
		})
		n.script.history, n.hub.pastBytes = log, 10*updateBytes
		n.script.bare = true
		n.exempt = true // each connection has a budget of its own
		var references [ledger.Commitments]*client
		var model [ledger.Commitments]keeper
		for level := range references {
			references[level] = n.dial("?extended=true&commitment=" + ledger.Commitment(level).String())
			model[level].owners = map[string]string{}
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
					n.checkResync(t, l, k, from, id, answer)
					continue
				}
				answers["resumed"]++
				l.from = from
				if want := l.hears(after(k.frames, from)); answer != resumed(id, from) || !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, %s from %d: answered %s\n got %q\nwant %q", seed, step, l.query(), from, answer, got, want)
				}
			}
			for range 1 + r.IntN(5) {
				n.script.step(r)
			}
			n.script.publish()
			var came [ledger.Commitments]int
			for level, c := range references {
				came[level] = len(model[level].frames)
				model[level].take(t, ledger.Commitment(level), c.settle())
			}
			for c, l := range live {
				if got, want := c.settle(), l.hears(after(model[l.level].frames[came[l.level]:], l.from)); !slices.Equal(got, want) {
					t.Fatalf("seed %d, step %d, %s, live:\n got %q\nwant %q", seed, step, l.query(), got, want)
				}
				if r.IntN(10) == 0 {
					_ = c.conn.Close()
					delete(live, c)
				}
			}
		}
	}
	if answers["resumed"] < 500 || answers["resync"] < 100 {
		t.Errorf("answers: %v", answers)
	}
}

// checkResync checks that who is sent away could not have been told all, and that the seq
// named as the oldest is one to go on from.
func (n *node) checkResync(t *testing.T, l *listener, k *keeper, from ledger.Seq, id, answer string) {
	t.Helper()
	a := parse(t, answer)
	n.hub.mu.Lock()
	_, newest := n.hub.positionLocked(l.level)
	n.hub.mu.Unlock()
	if answer != resync(id, a.Oldest, newest) || from >= a.Oldest || a.Oldest > newest {
		t.Fatalf("from %d: answered %s, the newest is %d", from, answer, newest)
	}
	c := n.dial(l.query() + fmt.Sprintf("&resume_from=%d", a.Oldest))
	c.expect(resumed("null", a.Oldest))
	got, want := c.settle(), l.hears(after(k.frames, a.Oldest))
	if a.Oldest == newest && len(want) > len(got) {
		want = want[len(want)-len(got):] // of frames that carry the newest seq the oldest may be gone
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s from the oldest, %d:\n got %q\nwant %q", l.query(), a.Oldest, got, want)
	}
	_ = c.conn.Close()
}

// What a client has missed is not held for it for ever: who names much, goes back, wants nothing
// any more and reads a little now and then is slow once all of that is not kept any more.
func TestABacklogIsNotHeldForEver(t *testing.T) {
	for _, query := range []string{"?extended=true&programs=" + programA.String(), "?extended=true&overflow=conflate&programs=" + programA.String()} {
		inMemory(t, func(c *Config) { c.RecentBytes = 10_000 * updateBytes }, func(n *node) {
			n.flood(func() bool { return n.script.seq >= 9_000 })
			c := n.dial(query)
			c.send(`{"type":"resume","id":1,"from_seq":0}`)
			c.send(`{"type":"unsubscribe","id":2,"all":true}`)
			c.expect(resumed("1", 0))
			eventually(n, "it wants nothing", func() bool { return n.says(`ledgerd_ws_subscribers{wants="nothing"} 1`) })
			n.flood(func() bool { return n.script.seq >= 30_000 })
			c.r = bufio.NewReader(thinLine{c.conn})
			if knows := c.endsSlow(0); knows >= 9_000 {
				n.Errorf("%s: it was told all up to %d", query, knows)
			}
		})
	}
}
