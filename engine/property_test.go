package engine

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/engine/sequencer"
)

// stream says what kind of random stream a run follows.
type stream struct {
	name      string
	info      ledger.SourceInfo
	retention sequencer.Retention
	lossy     bool // some blocks are never shown
	wanted    *wanted
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
	if s.wanted != nil {
		m.world.wanted, m.info.Complete = s.wanted, false
	}
	return m
}

func streams() []stream {
	all := sequencer.Retention{Slots: 100_000, Bytes: 1 << 30}
	gaps := finite()
	gaps.GapsAllowed = true
	tokens := &wanted{[]ledger.Pubkey{ledger.TokenProgram, key(9)}, []ledger.Pubkey{key(0), key(6), key(11)}}
	return []stream{
		{"live", live(), all, false, nil},
		{"few slots", live(), sequencer.Retention{Slots: 25, Bytes: 1 << 30}, false, nil},
		{"few bytes", live(), sequencer.Retention{Slots: 100_000, Bytes: 24 << 10}, false, nil},
		{"final by depth", finite(), all, false, nil},
		{"partial, lossy", gaps, all, true, nil},
		{"live, lossy", ledger.SourceInfo{Name: "test", Live: true, GapsAllowed: true}, all, true, nil},
		{"lossy, few slots", gaps, sequencer.Retention{Slots: 40, Bytes: 1 << 30}, true, nil},
		{"some accounts", live(), all, false, tokens},
		{"some accounts, lossy", gaps, all, true, &wanted{keys: []ledger.Pubkey{key(1), key(2), key(7)}}},
		{"some programs, few slots", live(), sequencer.Retention{Slots: 25, Bytes: 1 << 30}, false, &wanted{owners: []ledger.Pubkey{ledger.Token2022Program}}},
	}
}

// streamEvents is how long a random stream is: enough for some ten forks and folds.
const streamEvents = 170

// TestAnswersEqualNaiveModel follows random streams with engines of several shard counts and
// compares everything they publish and answer with the model, after every event or burst.
func TestAnswersEqualNaiveModel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for i, s := range streams() {
		t.Run(s.name, func(t *testing.T) {
			for round := range rounds(t, 1) {
				runtime.GOMAXPROCS(1 + (i+round)%4)
				seed := seeded(t, uint64(round+1)).Uint64()
				bubble.Test(t, func(t *testing.T) { followStream(t, s, seed) })
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

func followStream(t *testing.T, s stream, seed uint64) {
	m := s.model()
	g := newGenerator(seed, m)
	g.lossy, g.reopens = s.lossy, s.retention.Slots > 1000
	var all []followed
	counts := []int{1, 2, 3, 8}
	if testing.Short() {
		counts = []int{1, 3} // the race detector takes ten times as long
	}
	for _, shards := range counts {
		f := followed{startNode(t, s.info, Config{Shards: shards, Retention: s.retention, Filter: s.filter()}), newComparer(t, g.r, m, s.retention)}
		defer f.mustStop()
		for i := range testKeys {
			f.keys = append(f.keys, key(i))
		}
		f.keys = append(f.keys, key(12345))
		f.programs, f.wallets = testPrograms(), []ledger.Pubkey{key(0), key(1), key(2), key(778)}
		for i := range testSignatures {
			f.signatures = append(f.signatures, signature(i))
		}
		all = append(all, f)
	}
	for n := 0; n < streamEvents && m.stopped == ""; {
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
		compareAfter(t, g, all, burst)
	}
	if s.info.Finite {
		endOfStream(t, m, all)
	}
	for _, f := range all[1:] {
		if got, want := f.Head().StateHash, all[0].Head().StateHash; got != want {
			t.Errorf("%d shards: state hash %s, with one shard %s", len(f.shards), got, want)
		}
	}
	t.Logf("%d records, %d updates, deepest rollback %d, %d dead blocks revived", len(m.records), m.seq(), m.undoneDeepest, m.revived)
}

// compareAfter shows a burst to every engine, compares one of them in full and all in what
// they published, and lets time pass so that folds come due.
func compareAfter(t *testing.T, g *generator, all []followed, burst []ledger.Event) {
	t.Helper()
	chosen := g.r.IntN(len(all))
	for i, f := range all {
		var old *ledger.Head
		if i == chosen && g.chance(30) {
			old = f.Head()
		}
		f.send(burst...)
		f.publications(f.published)
		if i != chosen || len(g.m.chain) == 0 || g.chance(30) {
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
		if len(g.m.chain) > 0 {
			f.answers(f.Engine, nil)
		}
	}
}

func endOfStream(t *testing.T, m *model, all []followed) {
	t.Helper()
	m.end()
	for _, f := range all {
		f.endInput()
		if m.stopped != "" {
			if <-f.ended; f.err == nil {
				t.Errorf("%d shards: a block still waits for its parent at the end, and Run returned no error", len(f.shards))
			}
			f.err = nil
			continue
		}
		f.publications(f.published)
		f.answers(f.Engine, nil)
	}
}

// TestStateHashDoesNotDependOnThePath reaches the same chain straight, with every block
// doubled, and through branches that are undone; the hash is the same, and so are
// all accounts.
func TestStateHashDoesNotDependOnThePath(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for round := range rounds(t, 3) {
			m := newModel(live())
			g := newGenerator(seeded(t, uint64(round+100)).Uint64(), m)
			for n := 0; n < 120; n++ {
				if e := g.next(); e != nil {
					m.event(e)
				}
			}
			wanders := startNode(t, live(), Config{Shards: 3})
			straight := startNode(t, live(), Config{Shards: 2})
			var path []ledger.Event
			for _, e := range m.log {
				// Base state in between counts from where it came, so it is no part of this.
				if _, isBlock := e.(*ledger.Block); isBlock || path == nil {
					path = append(path, e.(ledger.Event))
				}
			}
			straight.send(path...)
			wanders.send(path...)
			last := m.tip().Block
			branch := m.chain[m.finalized].Block
			for depth := range 5 {
				branch = g.content(child(branch, last.Slot+ledger.Slot(depth)+1, 99), nil)
				wanders.send(branch)
			}
			wanders.send(slices.Repeat(path[len(path)-1:], 2)...)
			wanders.send(status(last, ledger.StatusConfirmed))
			if err := sameState(straight.Engine, wanders.Engine); err != nil {
				t.Error(err)
			}
			straight.mustStop()
			wanders.mustStop()
		}
	})
}

func sameState(a, b *Engine) error {
	if x, y := a.Head(), b.Head(); x.StateHash != y.StateHash || x.Tips[0].Hash != y.Tips[0].Hash {
		return fmt.Errorf("state hash %s at %s, want %s at %s", y.StateHash, y.Tips[0].Hash, x.StateHash, x.Tips[0].Hash)
	}
	for i := range testKeys {
		x, _, errX := a.Account(ledger.Query{}, key(i))
		y, _, errY := b.Account(ledger.Query{}, key(i))
		if seeAccount(&x) != seeAccount(&y) || fmt.Sprint(errX) != fmt.Sprint(errY) {
			return fmt.Errorf("account %d: %v %v, want %v %v", i, seeAccount(&y), errY, seeAccount(&x), errX)
		}
	}
	return nil
}
