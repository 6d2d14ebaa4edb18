package stream

import (
	"bufio"
	"net"
	"runtime"
	"strings"
	"testing"
)

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
