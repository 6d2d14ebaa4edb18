package stream

import (
	"bufio"
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

// await waits until everybody has read so many bytes.
func (r *readers) await(bytes int64) {
	for i := range r.read {
		for r.read[i].Load() < bytes {
			time.Sleep(time.Millisecond)
		}
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
