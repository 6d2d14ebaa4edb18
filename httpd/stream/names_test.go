package stream

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/budget"
)

// setOf returns the names of one kind.
func setOf(kind nameKind, keys ...ledger.Pubkey) nameSet {
	var all names
	all[kind] = keys
	set, _ := nameSet{}.plus(all)
	return set
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

// subscribeTo has a connection name so many accounts from one on, as many a message as it holds.
func (c *client) subscribeTo(first, count int) {
	c.Helper()
	for some := range slices.Chunk(keysFrom(first, count), 1250) {
		c.send(`{"type":"subscribe","id":1,"pubkeys":%s}`, list(some...))
	}
}

// F40: a name that is not held is taken back without a look at those that are, however many these are.
func TestTakingBackCostsWhatIsTakenBack(t *testing.T) {
	h := New(Config{Ledger: newFakeLedger()})
	s := joined(h, query{wants: wants{names: setOf(pubkeys, keysFrom(0, maxNames)...)}})
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
	frames, _, _ := s.outbox.drain()
	ledgertest.Equal(t, frames, 3, "answers")
}

// F47: what sockets name is in the memory for clients. Where that runs short the one that names more than is left is closed with 1013, and a
// handshake that names something is refused; who names a few finds room.
func TestNamesAreInTheMemoryForClients(t *testing.T) {
	const room = 100 << 20 / nameBytes * nameBytes
	inMemory(t, func(c *Config) { c.Memory = budget.New(room) }, func(n *node) {
		n.client.Exempt = true // each connection is a client by itself
		small := n.dial("?mode=none")
		c := n.dial("?mode=none")
		c.subscribeTo(0, 5000)
		c.settle()
		synctest.Wait() // until nothing is being written
		n.wantMetric("ledgerd_ws_queue_bytes %d", 5000*nameBytes)
		c.send(`{"type":"unsubscribe","id":2,"pubkeys":%s}`, list(keysFrom(4000, 1300)...))
		c.settle()
		synctest.Wait()
		n.wantMetric("ledgerd_ws_queue_bytes %d", 4000*nameBytes)
		others := 0
		leave := func(bytes int) { // others hold the rest
			synctest.Wait()
			more := room - room/8 - bytes - int(n.hub.memory.Used())
			n.hub.memory.Hold(more)
			others += more
		}
		defer func() { n.hub.memory.Hold(-others) }()
		leave(2000 * nameBytes)
		small.subscribeTo(0, 100)
		small.expect(subscribed("1", 100, 0, 0, 0))
		c.subscribeTo(20_000, 1250)
		c.endsWith(websocket.CloseTryAgainLater, endMemory.text)
		leave(batchBytes + 50*nameBytes - 1)
		var named []string
		for _, k := range keysFrom(0, 50) {
			named = append(named, k.String())
		}
		response, _ := n.handshake("?pubkeys=" + strings.Join(named, ","))
		ledgertest.Equal(n, response.StatusCode, http.StatusServiceUnavailable, "who names one more than there is room for")
		n.dial("?pubkeys=" + strings.Join(named[1:], ",")).quiet()
	})
}

// One client's names take at most an eighth of the memory, however many sockets it has.
func TestOneClientsNamesLeaveRoomForOthers(t *testing.T) {
	inMemory(t, func(c *Config) { c.Memory = budget.New(8 * 25_000 * nameBytes) }, func(n *node) {
		for range 2 {
			c := n.dial("?mode=none")
			c.subscribeTo(0, maxNames)
			c.settle()
		}
		third := n.dial("?mode=none")
		third.subscribeTo(0, 5000)
		third.settle()
		third.subscribeTo(5000, 1250)
		third.endsWith(websocket.CloseTryAgainLater, endMemory.text)
		n.client.Key = netip.MustParseAddr("192.0.2.2")
		other := n.dial("?mode=none")
		other.subscribeTo(0, maxNames)
		other.settle()
	})
}

// F47: so is a message that is not whole yet, as far as it came.
func TestHalfSentMessagesAreInTheMemoryForClients(t *testing.T) {
	inMemory(t, nil, func(n *node) {
		c := n.dial("?mode=none")
		c.raw(begun(repeat(100)))
		c.raw(more(repeat(40_000))[:30_000]) // nor is its frame
		synctest.Wait()
		if got := n.hub.memory.Used(); got < 30_100 || got > 2*30_100 {
			n.Errorf("%d bytes are counted of a message of which 30,100 came", got)
		}
		n.hub.memory.Hold(budget.DefaultBytes)
		defer n.hub.memory.Hold(-budget.DefaultBytes)
		c.raw(more(repeat(40_000))[30_000:])
		c.endsWith(websocket.CloseTryAgainLater, endMemory.text)
	})
}

// F40: while sockets with many names end, the hub's lock is free between some of the names of one.
func TestEndingSocketsLetOthersIn(t *testing.T) {
	h := New(Config{Ledger: newFakeLedger(), Memory: budget.New(1 << 40)})
	eventually(t, "names were taken out while another looked", func() (between bool) {
		var ending sync.WaitGroup
		for i := range 10 {
			s := joined(h, query{wants: wants{names: setOf(pubkeys, keysFrom(i*maxNames, maxNames)...)}})
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
