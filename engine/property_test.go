package engine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/sequencer"
)

// stream says what kind of random stream a run follows.
type stream struct {
	name      string
	info      ledger.SourceInfo
	retention sequencer.Retention
	lossy     bool // some blocks are never shown
	wanted    *wanted
	data      string // whose data is held: "", "all", or keys of programs
}

// dataPrograms returns what the engine is told of whose data is held.
func (s *stream) dataPrograms() *ledger.DataPrograms {
	if s.data == "" {
		return nil
	}
	programs, err := ledger.ParseDataPrograms(s.data)
	if err != nil {
		panic(err)
	}
	return programs
}

// filter returns what the engine is told of what is wanted.
func (s *stream) filter() *ledger.Filter {
	if s.wanted == nil {
		return nil
	}
	return ledger.NewFilter(s.wanted.owners, s.wanted.keys)
}

// model returns a model that follows the stream.
func (s *stream) model() *model {
	m := newModel(s.info)
	m.retained = s.retention.Slots
	m.world.data = s.data
	if s.wanted != nil {
		m.world.wanted, m.info.Complete = s.wanted, false
	}
	return m
}

// generator returns a generator for the stream.
func (s *stream) generator(seed uint64, exact bool) *generator {
	g := newGenerator(seed, s.model())
	g.lossy, g.exact = s.lossy, exact
	return g
}

// randomEvents returns so many events of a stream, and the model that followed them.
func (s *stream) randomEvents(seed uint64, n int) (events []ledger.Event, m *model) {
	g := s.generator(seed, true)
	for len(events) < n {
		if e := g.next(); e != nil {
			g.m.event(e)
			events = append(events, e)
		}
	}
	return events, g.m
}

func streams() []stream {
	all := sequencer.Retention{Slots: 100_000, Bytes: 1 << 30}
	gaps := finite()
	gaps.GapsAllowed = true
	tokens := &wanted{[]ledger.Pubkey{ledger.TokenProgram, key(9)}, []ledger.Pubkey{key(0), key(6), key(11)}}
	programs := &wanted{owners: []ledger.Pubkey{ledger.Token2022Program}}
	some := ledger.JoinKeys([]ledger.Pubkey{ledger.TokenProgram, ledger.SystemProgram})
	return []stream{
		{"live", live(), all, false, nil, "all"},
		{"few slots", live(), sequencer.Retention{Slots: 5, Bytes: 1 << 30}, false, nil, some},
		{"few bytes", live(), sequencer.Retention{Slots: 100_000, Bytes: 24 << 10}, false, nil, ""},
		{"final by depth", finite(), all, false, nil, "all"},
		{"partial, lossy", gaps, all, true, nil, some},
		{"live, lossy", ledger.SourceInfo{Name: "test", Live: true, GapsAllowed: true}, all, true, nil, "all"},
		{"lossy, few slots", gaps, sequencer.Retention{Slots: 8, Bytes: 1 << 30}, true, nil, ""},
		{"some accounts", live(), all, false, tokens, some},
		{"some accounts, lossy", gaps, all, true, &wanted{keys: []ledger.Pubkey{key(1), key(2), key(7)}}, "all"},
		{"some programs, few slots", live(), sequencer.Retention{Slots: 12, Bytes: 1 << 30}, false, programs, "all"},
	}
}

// streamEvents is how long a random stream is: enough for some ten forks and folds.
const streamEvents = 170

// F19, F20, F21, F22, F23: TestAnswersEqualNaiveModel follows random streams with engines of several shard counts and
// compares everything they publish and answer with the model, after every event or burst. Two of three rounds compare only what is
// published, which takes little time, of longer streams: they find the forks that are rare.
func TestAnswersEqualNaiveModel(t *testing.T) { eachStream(t, sample(60, 2, 1), followStream) }

// eachStream runs f for each kind of stream with several seeds, on several numbers of processors.
func eachStream(t *testing.T, rounds int, f func(t *testing.T, s stream, seed uint64, round int)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, s := range streams() {
		t.Run(s.name, func(t *testing.T) {
			for round := range rounds {
				runtime.GOMAXPROCS(1 + (i+round)%4)
				seed := seeded(t, uint64(100*i+round+1)).Uint64()
				bubbletest.Test(t, func(t *testing.T) { f(t, s, seed, round) })
				if t.Failed() {
					return
				}
			}
		})
	}
}

// followed is an engine with what was compared of it.
type followed struct {
	*subject
	*comparer
}

// follow returns an engine for the stream, to be compared with a model.
func (s *stream) follow(t *testing.T, r *rand.Rand, m *model, c Config) followed {
	c.Retention = s.retention
	f := followed{startNode(t, s.info, bound(t, c, s.filter(), s.dataPrograms())), newComparer(t, r, m, s.retention)}
	f.archived = c.HistoryBytes > 0
	return f
}

// show shows an event, and compares what it leads to.
func (f followed) show(e ledger.Event) {
	f.m.event(e)
	f.send(e)
	f.publications(f.published)
}

func followStream(t *testing.T, s stream, seed uint64, round int) {
	g, answers := s.generator(seed, round%3 == 1), round%3 == 0
	m, engines, length := g.m, 1, 2*streamEvents
	if answers {
		engines, length = sample(4, 2, 1), sample(streamEvents, streamEvents, streamEvents/2)
	}
	var all []followed
	for _, i := range g.r.Perm(4)[:engines] {
		all = append(all, s.follow(t, g.r, m, Config{Shards: []int{1, 2, 3, 8}[i]}))
	}
	for n := 0; n < length && m.stopped == ""; {
		var burst []ledger.Event
		for range 1 + g.r.IntN(4)*g.r.IntN(2) {
			e := g.next()
			if e == nil {
				continue
			}
			if m.event(e); m.stopped != "" {
				t.Fatalf("the model stopped at event %d (%s): the stream must not contradict itself", n, m.stopped)
			}
			burst = append(burst, e)
		}
		n += len(burst)
		compareAfter(t, g, all, burst, answers)
	}
	for _, f := range all {
		atTheEnd(t, f)
	}
	t.Logf("%d records, %d updates", len(m.records), m.seq())
}

// compareAfter shows a burst to every engine, compares all in what they published and, with answers, one of them in full, and
// lets time pass so that folds come due.
func compareAfter(t *testing.T, g *generator, all []followed, burst []ledger.Event, answers bool) {
	t.Helper()
	chosen := g.r.IntN(len(all))
	for i, f := range all {
		var old *ledger.Head
		if i == chosen && g.chance(30) {
			old = f.Head()
		}
		f.send(burst...)
		f.publications(f.published)
		if !answers || i != chosen || len(g.m.chain) == 0 || g.chance(sample(30, 65, 80)) {
			continue
		}
		f.answers(f.Engine, nil)
		if old != nil && old.HasBlock {
			// A query may still be at work on a version when it is replaced.
			time.Sleep(time.Duration(g.r.IntN(int(queryDeadline))))
			f.answers(f.Engine, old)
		}
	}
	if g.chance(40) {
		time.Sleep(time.Duration(g.r.IntN(int(2 * foldAfter))))
		f := all[g.r.IntN(len(all))]
		if answers && len(g.m.chain) > 0 && g.chance(sample(100, 50, 25)) {
			f.answers(f.Engine, nil)
		}
	}
}

// atTheEnd ends the input of a finite source and stops the engine: then no block or transaction is kept that it does not
// show, and what blocks hold is answered without the shards.
func atTheEnd(t *testing.T, f followed) {
	t.Helper()
	if m := f.m; !m.info.Live {
		m.end()
		f.endInput()
		if m.stopped != "" {
			lowest := m.waiting[0].block
			says := fmt.Sprintf("block %d builds on slot %d", lowest.Slot, lowest.ParentSlot)
			if err := f.end(); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Run: %v, want one line with %q", err, says)
			}
			return
		}
		f.publications(f.published)
		f.answers(f.Engine, nil)
	}
	time.Sleep(2 * foldAfter)
	synctest.Wait()
	f.answers(f.Engine, nil)
	head, first := f.Head(), slices.IndexFunc(f.published, func(p *ledger.Publication) bool { return p.Head.HasBlock })
	if old := f.published[first].Head; old.Tip(ledger.Finalized).Version < head.Tip(ledger.Finalized).Version {
		_, _, err := f.Accounts(ledger.Query{Commitment: ledger.Finalized, Head: old}, f.keys)
		ledgertest.ErrorIs(t, err, ledger.ErrUnavailable, "at a head that is folded away")
	}
	s := f.shownOf(f.held[head], head, ledger.Processed)
	ledgertest.Equal(t, f.Stats().Transactions, len(s.newestFirst()), "transactions in memory, which are those that are shown,")
	f.mustStop()
	for _, ask := range f.questions()[4:] {
		ledgertest.ErrorIs(t, ask(f.Engine, at(ledger.Processed), s), nil, "after the shards ended")
	}
}

// sameAccounts holds what two nodes answer of the first keys against each other.
func sameAccounts(a, b *Engine, keys int) error {
	for i := range keys {
		x, _, errX := a.Account(ledger.Query{}, key(i))
		y, _, errY := b.Account(ledger.Query{}, key(i))
		if seeAccount(&x) != seeAccount(&y) || fmt.Sprint(errX) != fmt.Sprint(errY) {
			return fmt.Errorf("account %d: %v %v, want %v %v", i, seeAccount(&y), errY, seeAccount(&x), errX)
		}
	}
	return nil
}
