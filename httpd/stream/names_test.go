package stream

import (
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
)

// setOf returns the names of one kind.
func setOf(kind nameKind, keys ...ledger.Pubkey) (all names) {
	all[kind] = keys
	return all
}

// keysFrom returns so many keys in ascending order.
func keysFrom(first, count int) (keys []ledger.Pubkey) {
	for n := range count {
		keys = append(keys, key(first+n))
	}
	return keys
}

// The index leads to the same subscribers as a naive model, and the sets hold the same names, whoever names and takes back what; copies that
// somebody else has do not change.
func TestNamesLeadToWhoHasThem(t *testing.T) {
	const kind = programs
	for seed := range uint64(ledgertest.Sample(40, 20, 5)) {
		r := rand.New(rand.NewPCG(seed, 8))
		x := make(index[ledger.Pubkey, *subscriber])
		subscribers := make([]*subscriber, 1+r.IntN(3*fewWatchers))
		has := map[*subscriber]map[ledger.Pubkey]bool{}
		sets := map[*subscriber]nameSet{}
		for i := range subscribers {
			subscribers[i] = new(subscriber)
			has[subscribers[i]] = map[ledger.Pubkey]bool{}
		}
		for range 2000 {
			s := subscribers[r.IntN(len(subscribers))]
			old, held := sets[s], maps.Clone(has[s])
			var some names
			some[kind] = keysFrom(r.IntN(80), 1+r.IntN(8))
			if r.IntN(2) == 0 {
				set, added := old.plus(some)
				x.add(added[kind], s)
				sets[s] = set
				for _, k := range some[kind] {
					has[s][k] = true
				}
			} else {
				set, removed := old.minus(some)
				if got := x.remove(some[kind], s); got != removed.count() {
					t.Fatalf("seed %d: %d names were taken back, want %d", seed, got, removed.count())
				}
				sets[s] = set
				for _, k := range some[kind] {
					delete(has[s], k)
				}
			}
			for set, want := range map[*nameSet]map[ledger.Pubkey]bool{&old: held, new(sets[s]): has[s]} {
				sorted := slices.SortedFunc(maps.Keys(want), func(a, b ledger.Pubkey) int { return a.Compare(&b) })
				if got := set.lists()[kind]; !slices.Equal(got, sorted) || set.count() != len(sorted) {
					t.Fatalf("seed %d: a set holds %d names, want %d", seed, len(got), len(sorted))
				}
			}
		}
		for _, k := range keysFrom(0, 90) {
			got := x.at(&k)
			want := slices.DeleteFunc(slices.Clone(subscribers), func(s *subscriber) bool { return !has[s][k] })
			for _, s := range want {
				if !slices.Contains(got, s) {
					t.Fatalf("seed %d: a name does not lead to one that has it", seed)
				}
			}
			if len(got) != len(want) || x[k] != nil && len(want) == 0 {
				t.Fatalf("seed %d: a name leads to %d subscribers, want %d", seed, len(got), len(want))
			}
		}
	}
}

// F40: a name that is not held is taken back without a look at those that are, however many these are.
func TestTakingBackCostsWhatIsTakenBack(t *testing.T) {
	h := New(Config{Ledger: newFakeLedger()})
	s := joined(h, request{narrow: true, names: setOf(pubkeys, keysFrom(0, maxNames)...)})
	for _, message := range []string{
		`{"type":"unsubscribe","id":2,"pubkeys":` + list(key(1<<20)) + `}`,
		`{"type":"unsubscribe","id":2,"pubkeys":` + list(key(77)) + `}`,
		`{"type":"subscribe","id":2,"pubkeys":` + list(key(77)) + `}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.handle([]byte(message))
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 32<<10 {
			t.Errorf("%s: %d bytes were allocated, want a few KiB of some %d", message, got, 32*maxNames)
		}
	}
	frames := s.outbox.drain()
	ledgertest.Equal(t, frames, 3, "answers")
}

// F40: what waits for a client that does not read shares its names, as long as these change little in between, and counts for what it may hold alone.
func TestResumesThatWaitShareTheNames(t *testing.T) {
	const resumes = 50
	for _, changed := range []int{1, maxNames / 40} { // one of some 300 nodes of the tree, or most
		h := New(Config{Ledger: newFakeLedger()})
		s := joined(h, request{narrow: true, names: setOf(pubkeys, keysFrom(0, maxNames)...)})
		log := newScript(h, newFakeLedger())
		log.append(1, account(1, 1, programA))
		log.publish()
		s.outbox.drain()
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		var keys []ledger.Pubkey
		for i := range changed {
			keys = append(keys, key(77+i*(maxNames-77)/changed))
		}
		before, countedBefore := heap(), h.memory.Used()
		for range resumes {
			for _, change := range []string{"unsubscribe", "subscribe"} {
				s.handle([]byte(`{"type":"` + change + `","id":2,"pubkeys":` + list(keys...) + `}`))
			}
			s.handle([]byte(`{"type":"resume","from_seq":0}`))
		}
		held, counted := int64(heap()-before), h.memory.Used()-countedBefore
		if changed == 1 && held > resumes*32<<10 || held > counted {
			t.Errorf("%d names change: %d bytes are held for %d resumes, and counted are %d", changed, held, resumes, counted)
		}
		ledgertest.Equal(t, s.outbox.ending(), nil, "why the connection ends")
		runtime.KeepAlive(s)
	}
}

// F40: while sockets with many names end, the hub's lock is free between some of the names of one.
func TestEndingSocketsLetOthersIn(t *testing.T) {
	h := New(Config{Ledger: newFakeLedger(), Memory: budget.New(1 << 40)})
	eventually(t, "names were taken out while another looked", func() (between bool) {
		var ending sync.WaitGroup
		for i := range 10 {
			s := joined(h, request{narrow: true, names: setOf(pubkeys, keysFrom(i*maxNames, maxNames)...)})
			ending.Go(s.depart)
		}
		for left := 1; left > 0; {
			h.mu.Lock()
			left = len(h.levels[ledger.Processed].indexes[pubkeys])
			h.mu.Unlock()
			between = between || left%maxNames != 0
		}
		ending.Wait()
		return between
	})
	ledgertest.Equal(t, h.memory.Used(), 0, "bytes that are counted when all have ended")
}
