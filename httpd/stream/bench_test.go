package stream

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ledgerd/engine/ledger"
)

const blockUpdates = 1000 // of a busy slot, about

// publicationsOf returns publications of so many updates to repeat: their slots and numbers are those of the first
// round, which no frame's length depends on.
func publicationsOf(count, updates int) []*ledger.Publication {
	out := make([]*ledger.Publication, count)
	for i := range out {
		r := &ledger.Record{Kind: ledger.BlockRecord, Version: 1, Slot: 400_000_000, Time: at(400_000_000), FirstSeq: 1_000_000_000}
		for n := range updates {
			r.Updates = append(r.Updates, ledger.Update{Account: account(i*updates+n, 1_000_000_000, programA)})
		}
		head := &ledger.Head{HasBlock: true}
		for level := range head.Tips {
			head.Tips[level] = ledger.Tip{Version: 1, Slot: r.Slot, Seq: r.LastSeq()}
		}
		out[i] = &ledger.Publication{Head: head, Records: []*ledger.Record{r}}
	}
	return out
}

const firehoseSubscribers = 500

// readers read sockets as fast as they can and count the bytes.
type readers struct {
	read    []atomic.Int64
	reading sync.WaitGroup
}

func readAll(conns []net.Conn) *readers {
	r := &readers{read: make([]atomic.Int64, len(conns))}
	for i, conn := range conns {
		r.reading.Go(func() {
			room := make([]byte, 128<<10)
			for {
				n, err := conn.Read(room)
				r.read[i].Add(int64(n))
				if err != nil {
					return
				}
			}
		})
	}
	return r
}

// slowest returns how many bytes everybody has read.
func (r *readers) slowest() int64 {
	least := r.read[0].Load()
	for i := range r.read {
		least = min(least, r.read[i].Load())
	}
	return least
}

// await waits until everybody has read so many bytes.
func (r *readers) await(bytes int64) {
	for r.slowest() < bytes {
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkFirehose publishes blocks to 500 subscribers of everything, which read them in
// the same process. One operation is one block told to all.
func BenchmarkFirehose(b *testing.B) {
	n := serve(b, nil)
	publications := publicationsOf(8, blockUpdates)
	conns := make([]net.Conn, firehoseSubscribers)
	for i := range conns {
		conns[i] = n.dial("").conn
		if err := conns[i].SetDeadline(time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
	r := readAll(conns)
	sizes := make([]int64, len(publications))
	for i, p := range publications {
		e := &emission{time: p.Records[0].Time, updates: p.Records[0].Updates}
		for k := range e.updates {
			sizes[i] += int64(len(e.appendPart(nil, basic, k)))
		}
	}
	const window = 256 * blockBytes // a quarter of the ring
	published := int64(0)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		n.hub.Publish(publications[i%len(publications)])
		published += sizes[i%len(publications)]
		r.await(published - window)
	}
	r.await(published)
	b.StopTimer()
	b.ReportMetric(float64(b.N)*blockUpdates*firehoseSubscribers/b.Elapsed().Seconds()/1e6, "Mframes/s")
	b.ReportMetric(float64(published)*firehoseSubscribers/b.Elapsed().Seconds()/1e6, "MB/s")
	for _, conn := range conns {
		_ = conn.Close()
	}
	r.reading.Wait()
}

// spectators enters subscribers whose outboxes nobody empties but the benchmark.
func spectators(h *Hub, count int, wanted func(i int) wants) []*subscriber {
	all := make([]*subscriber, count)
	for i := range all {
		all[i] = &subscriber{hub: h, wants: wanted(i), outbox: newOutbox(1<<40, unlimited()), seat: &seat{peer: newPeer()}}
		h.join(all[i], ledger.Opt[ledger.Seq]{})
	}
	return all
}

// BenchmarkPublishFiltered is the cost of publishing to 10,000 filtered subscribers.
func BenchmarkPublishFiltered(b *testing.B) {
	const subscribers = 10_000
	for _, shape := range []struct{ updates, keys, matching int }{
		{blockUpdates, 0, 0}, // what every block costs at least
		{blockUpdates, 1, 0}, {blockUpdates, 1, 100}, {blockUpdates, 1, 1000},
		{30_000, 10, 3000}, // 75,000 a second, in blocks of 400 ms
	} {
		b.Run(fmt.Sprintf("updates=%d,keys=%d,matching=%d", shape.updates, shape.keys, shape.matching), func(b *testing.B) {
			h := New(Config{})
			publication := publicationsOf(1, shape.updates)[0]
			all := spectators(h, subscribers, func(i int) wants {
				var keys []ledger.Pubkey
				for k := range shape.keys {
					// Of the keys that match each is of another subscriber, as far as there are enough.
					if n := k*subscribers + i; n < shape.matching {
						keys = append(keys, key(n*shape.updates/shape.matching))
					} else {
						keys = append(keys, key(1_000_000+n))
					}
				}
				return wants{names: names{pubkeys: keys}}
			})
			b.ReportAllocs()
			for b.Loop() {
				h.Publish(publication)
				for _, s := range all[:min(shape.matching, subscribers)] {
					s.outbox.drain()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(shape.updates), "ns/update")
		})
	}
}

// inUse returns how many bytes the heap and the stacks take.
func inUse() (heap, stack uint64) {
	for range 3 { // what is pooled survives the first two
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}

// BenchmarkIdle is what a connection holds that named ten keys and hears nothing, with the
// client's end of the socket.
func BenchmarkIdle(b *testing.B) {
	const conns = 2000
	n := serve(b, nil)
	open := make([]net.Conn, conns)
	queries := make([]string, conns)
	for i := range queries {
		names := make([]string, 10)
		for k := range names {
			names[k] = key(10*i + k).String()
		}
		queries[i] = "?pubkeys=" + strings.Join(names, ",")
	}
	for b.Loop() {
		heap, stack := inUse()
		for i := range open {
			_, c := n.handshake(queries[i])
			open[i] = c.conn
		}
		eventually(b, "all are there", func() bool { return n.connections() == conns })
		for _, conn := range open { // everybody has spoken
			c := &client{TB: b, conn: conn, r: bufio.NewReader(conn)}
			c.settle()
		}
		heapThen, stackThen := inUse()
		b.ReportMetric(float64(heapThen-heap)/conns, "heapB/conn")
		b.ReportMetric(float64(stackThen-stack)/conns, "stackB/conn")
		for i := range open {
			_ = open[i].Close()
		}
		eventually(b, "all are gone", func() bool { return n.connections() == 0 })
	}
}

// BenchmarkSubscribe is one more name for a subscriber that has many: how long the hub's
// lock is held for it.
func BenchmarkSubscribe(b *testing.B) {
	for _, has := range []int{1, 100, maxNames - 1} {
		b.Run(fmt.Sprintf("has=%d", has), func(b *testing.B) {
			h := New(Config{})
			s := spectators(h, 1, func(int) wants {
				var keys []ledger.Pubkey
				for i := range has {
					keys = append(keys, key(i))
				}
				return wants{names: names{pubkeys: keys}}
			})[0]
			more := &request{Pubkeys: []string{key(1 << 19).String()}}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.subscribe(more, noID); err != nil {
					b.Fatal(err)
				}
				s.outbox.drain()
			}
		})
	}
}
