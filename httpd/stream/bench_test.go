package stream

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"ledgerd/engine/ledger"
)

const blockUpdates = 1000 // of a busy slot, about

// publicationsOf returns publications to repeat: their slots and numbers are those of the first
// round, which no frame's length depends on.
func publicationsOf(count int) []*ledger.Publication {
	out := make([]*ledger.Publication, count)
	for i := range out {
		r := &ledger.Record{Kind: ledger.BlockRecord, Version: 1, Slot: 400_000_000, Time: at(400_000_000), FirstSeq: 1_000_000_000}
		for n := range blockUpdates {
			r.Updates = append(r.Updates, ledger.Update{Account: account(i*blockUpdates+n, 1_000_000_000, programA)})
		}
		head := &ledger.Head{HasBlock: true}
		for level := range head.Tips {
			head.Tips[level] = ledger.Tip{Version: 1, Slot: r.Slot, Seq: r.LastSeq()}
		}
		out[i] = &ledger.Publication{Head: head, Records: []*ledger.Record{r}}
	}
	return out
}

// drain reads frames as fast as it can, and tells after every block.
func (c *client) drain(blocks chan<- struct{}) {
	r := bufio.NewReaderSize(c.conn, 256<<10)
	frames := 0
	for {
		head, err := r.Peek(4)
		if err != nil {
			return
		}
		length, header := int(head[1]), 2
		if length == 126 {
			length, header = int(binary.BigEndian.Uint16(head[2:])), 4
		}
		if _, err := r.Discard(header + length); err != nil {
			return
		}
		if frames++; frames%blockUpdates == 0 {
			blocks <- struct{}{}
		}
	}
}

// BenchmarkFirehose publishes blocks to 500 subscribers of everything, which read them in
// the same process. One operation is one block read by all.
func BenchmarkFirehose(b *testing.B) {
	const subscribers = 500
	n := serve(b, nil)
	publications := publicationsOf(8)
	blocks := make(chan struct{}, subscribers)
	var reading sync.WaitGroup
	clients := make([]*client, subscribers)
	for i := range clients {
		clients[i] = n.dial("")
		reading.Go(func() { clients[i].drain(blocks) })
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n.hub.Publish(publications[i%len(publications)])
		for range subscribers {
			<-blocks
		}
	}
	b.ReportMetric(float64(b.N)*blockUpdates*subscribers/b.Elapsed().Seconds(), "frames/s")
	for _, c := range clients {
		_ = c.conn.Close()
	}
	reading.Wait()
}

// spectators enters subscribers whose outboxes nobody empties but the benchmark.
func spectators(h *Hub, count int, wanted func(i int) wants) []*subscriber {
	all := make([]*subscriber, count)
	for i := range all {
		all[i] = &subscriber{hub: h, wants: wanted(i), outbox: newOutbox(1<<40, new(unshared))}
		h.join(all[i], ledger.Opt[ledger.Seq]{})
	}
	return all
}

// BenchmarkPublishFiltered is the cost of publishing to 10,000 subscribers of one key each.
func BenchmarkPublishFiltered(b *testing.B) {
	const subscribers = 10_000
	for _, matching := range []int{0, 100, 1000} { // updates of a block that somebody named
		b.Run(fmt.Sprintf("matching=%d", matching), func(b *testing.B) {
			h := New(Config{})
			publication := publicationsOf(1)[0]
			all := spectators(h, subscribers, func(i int) wants {
				w := silence()
				if i < matching {
					w.pubkeys[key(i)] = struct{}{}
				} else {
					w.pubkeys[key(1_000_000+i)] = struct{}{}
				}
				return w
			})
			var room []piece
			b.ReportAllocs()
			for b.Loop() {
				h.Publish(publication)
				for _, s := range all[:matching] {
					room, _ = s.outbox.take(room)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blockUpdates, "ns/update")
		})
	}
}

// BenchmarkPublishToNobody is what every block costs at least.
func BenchmarkPublishToNobody(b *testing.B) {
	h := New(Config{})
	publication := publicationsOf(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		h.Publish(publication)
	}
}

// BenchmarkSubscribe is one more name for a subscriber that has many: how long the hub's
// lock is held for it.
func BenchmarkSubscribe(b *testing.B) {
	for _, has := range []int{1, 100, maxKeys - 1} {
		b.Run(fmt.Sprintf("has=%d", has), func(b *testing.B) {
			h := New(Config{})
			s := spectators(h, 1, func(int) wants {
				w := silence()
				for i := range has {
					w.pubkeys[key(i)] = struct{}{}
				}
				return w
			})[0]
			more := &request{Pubkeys: names{key(1 << 19).String()}}
			var room []piece
			b.ReportAllocs()
			for b.Loop() {
				if err := s.subscribe(more, noID); err != nil {
					b.Fatal(err)
				}
				room, _ = s.outbox.take(room)
			}
		})
	}
}

// BenchmarkFrames is the encoding of one block.
func BenchmarkFrames(b *testing.B) {
	r := publicationsOf(1)[0].Records[0]
	for f, name := range map[form]string{literal: "literal", extended: "extended"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e := &emission{slot: r.Slot, time: r.Time, firstSeq: r.FirstSeq, lastSeq: r.LastSeq(), updates: r.Updates}
				e.pieces(f)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blockUpdates, "ns/frame")
		})
	}
}
