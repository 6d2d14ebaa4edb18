package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ledgerd/bench/feed"
	"ledgerd/engine/ledger/ledgertest"
)

// BenchmarkListsOverLoopback asks for 1,000 accounts of a program at a time, over four
// connections, from a node of a million accounts. CPU-ns/record is of this whole process: the
// node, and clients that take the bytes and look at none of them.
func BenchmarkListsOverLoopback(b *testing.B) {
	const page, connections = 1000, 4
	events := filepath.Join(b.TempDir(), "events")
	writeFeed(b, events, feed.Config{Accounts: 1_000_000, Updates: 100}, 64)
	r := start(b, "--data-dir", b.TempDir(), "--source", "file:"+events)
	defer r.stop()
	host := strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api")

	b.ResetTimer()
	begun := cpuTime(b)
	var clients sync.WaitGroup
	for i := range connections {
		clients.Go(func() { takeLists(b, host, page, i, (b.N+connections-1)/connections) })
	}
	clients.Wait()
	records := float64((b.N + connections - 1) / connections * connections * page)
	b.ReportMetric(float64(cpuTime(b)-begun)/records, "CPU-ns/record")
	b.ReportMetric(records/1e6/b.Elapsed().Seconds(), "Mrecords/s")
}

// takeLists asks on one connection, and drops what it is answered.
func takeLists(b *testing.B, host string, page, from, requests int) {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		b.Error(err)
		return
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 256<<10)
	for n := range requests {
		key := feed.Program(from + n)
		fmt.Fprintf(conn, "GET /api/accounts/program/%s?limit=%d HTTP/1.1\r\nHost: localhost\r\n\r\n", key, page)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusOK || resp.ContentLength < 100*int64(page) {
			b.Errorf("list of %v: %v, %+v", key, err, resp)
			return
		}
		if _, err := in.Discard(int(resp.ContentLength)); err != nil {
			b.Error(err)
			return
		}
	}
}

// writeFeed writes a feed of so many blocks.
func writeFeed(b *testing.B, path string, c feed.Config, blocks int) {
	b.Helper()
	out, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	buffered := bufio.NewWriterSize(out, 1<<20)
	f, err := feed.New(buffered, c)
	for range blocks {
		if err == nil {
			_, err = f.Block()
		}
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err != nil && err != io.EOF {
		b.Fatal(err)
	}
}

var cpuTime = ledgertest.CPUTime
