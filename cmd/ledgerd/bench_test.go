package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// BenchmarkAccountOverLoopback polls GET /api/account/{pubkey} over 64 connections, beside a
// bare fasthttp handler that answers the same bytes to the same clients. The two take
// turns within one run; compare their requests/s, p50 and p99 with each other.
func BenchmarkAccountOverLoopback(b *testing.B) {
	const connections = 64
	r := start(b, "--data-dir", b.TempDir(), "--source", "sim:accounts=1000000,slot_time=400ms",
		"--rate-limit-exempt", "127.0.0.0/8", "--ops-listen", "127.0.0.1:0")
	defer r.stop()
	keys := accountKeys(b, r.base, 4096)
	host := strings.TrimSuffix(strings.TrimPrefix(r.base, "http://"), "/api")
	bare := startBare(b, host, keys[0])

	const rounds = 5
	for round := range rounds {
		for _, target := range []struct{ name, host string }{{"bare", bare}, {"ledgerd", host}} {
			b.Run(fmt.Sprintf("%s/round%d", target.name, round), func(b *testing.B) {
				latencies := poll(b, target.host, keys, connections)
				slices.Sort(latencies)
				b.ReportMetric(float64(len(latencies))/b.Elapsed().Seconds(), "requests/s")
				b.ReportMetric(float64(latencies[len(latencies)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(latencies[len(latencies)*99/100].Microseconds()), "p99-µs")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// accountKeys returns keys of live accounts, from the system program's list.
func accountKeys(b *testing.B, base string, n int) []string {
	b.Helper()
	status, body := get(b, fmt.Sprintf("%s/accounts/program/%s?limit=%d", base, strings.Repeat("1", 32), n))
	var list struct {
		Accounts []struct{ Pubkey string }
	}
	if err := json.Unmarshal(body, &list); status != http.StatusOK || err != nil || len(list.Accounts) != n {
		b.Fatalf("program list: %d, %v, %d accounts", status, err, len(list.Accounts))
	}
	keys := make([]string, n)
	for i, a := range list.Accounts {
		keys[i] = a.Pubkey
	}
	return keys
}

// startBare serves one real answer, head and body, from memory.
func startBare(b *testing.B, host, key string) (address string) {
	b.Helper()
	resp, err := client.Get("http://" + host + "/api/account/" + key)
	if err != nil {
		b.Fatal(err)
	}
	resp.Body.Close()
	_, body := get(b, "http://"+host+"/api/account/"+key)
	headers := resp.Header.Clone()
	for _, own := range []string{"Date", "Content-Length", "Content-Type", "Connection"} {
		headers.Del(own)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &fasthttp.Server{NoDefaultServerHeader: true, Handler: func(ctx *fasthttp.RequestCtx) {
		for name, values := range headers {
			ctx.Response.Header.Set(name, values[0])
		}
		ctx.SetContentType("application/json")
		ctx.SetBody(body)
	}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(ln) })
	b.Cleanup(func() {
		_ = server.Shutdown()
		serving.Wait()
	})
	return ln.Addr().String()
}

// poll sends b.N requests over the connections, one at a time on each, and returns how
// long each took.
func poll(b *testing.B, host string, keys []string, connections int) []time.Duration {
	var clients sync.WaitGroup
	parts := make([][]time.Duration, connections)
	for i := range connections {
		share := b.N / connections
		if i < b.N%connections {
			share++
		}
		conn, err := net.Dial("tcp", host)
		if err != nil {
			b.Fatal(err)
		}
		clients.Go(func() {
			defer conn.Close()
			parts[i] = pollOne(b, conn, keys[i*len(keys)/connections:], share)
		})
	}
	clients.Wait()
	return slices.Concat(parts...)
}

func pollOne(b *testing.B, conn net.Conn, keys []string, requests int) []time.Duration {
	latencies := make([]time.Duration, 0, requests)
	reader := bufio.NewReader(conn)
	var resp fasthttp.Response
	var line []byte
	for n := range requests {
		line = append(line[:0], "GET /api/account/"...)
		line = append(line, keys[n%len(keys)]...)
		line = append(line, " HTTP/1.1\r\nHost: localhost\r\n\r\n"...)
		sent := time.Now()
		if _, err := conn.Write(line); err != nil {
			b.Error(err)
			return latencies
		}
		if err := resp.Read(reader); err != nil || resp.StatusCode() != fasthttp.StatusOK {
			b.Errorf("answer %d: %v", resp.StatusCode(), err)
			return latencies
		}
		latencies = append(latencies, time.Since(sent))
	}
	return latencies
}
