package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// proxies are the words that start a program whose configuration is in testdata/proxies. Words and configurations name a folder, where to listen
// and whom to ask. nginx keeps a connection to the node for two seconds, and HAProxy ends half of those that are quiet each second. The node waits so
// much longer that a busy machine does not have it come first.
var proxies = map[string][]string{
	"nginx":   {"nginx", "-p", "%[1]s", "-c", "%[1]s/config"},
	"haproxy": {"haproxy", "-db", "-f", "%[1]s/config"},
}

// F35: proxies use a connection again until they close it themselves. Requests at all times around that, on connections that were quiet since they were
// all in use at once, are answered: the node is not the first to end one.
func TestConnectionsOutliveTheProxysOwn(t *testing.T) {
	const conns, kept = 60, 2 * time.Second
	for name, program := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs(t, name)
			v := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=100,slots=5,slot_time=0", "--idle-timeout", "1m").ready()
			random, _ := seededRand(t)
			dir, address, node := t.TempDir(), freeAddress(t), newCutter(t, random, 0, 0, func() string { return hostOf(v.base) })
			told := func(text string) string {
				return fmt.Sprintf(text+"%.0[1]s%.0[2]s%.0[3]s", dir, address, node.listener.Addr())
			}
			must(t, os.WriteFile(filepath.Join(dir, "config"), []byte(told(string(readFile(t, "testdata/proxies/"+name+".conf")))), 0o600))
			var words []string
			for _, word := range program {
				words = append(words, told(word))
			}
			ctx, cancel := context.WithCancel(context.Background())
			proxy := exec.CommandContext(ctx, words[0], words[1:]...)
			proxy.Stderr = os.Stderr
			proxy.Cancel = func() error { return proxy.Process.Signal(syscall.SIGTERM) }
			must(t, proxy.Start())
			defer func() { cancel(); _ = proxy.Wait() }()
			clients := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}, Timeout: patience}
			defer clients.CloseIdleConnections()
			v.until("the proxy answers", func() bool {
				a, err := ask(clients, "http://"+address+"/api/status")
				return err == nil && a.status == http.StatusOK
			})
			var asking sync.WaitGroup
			var inUse atomic.Bool // all connections, at once
			for i := range conns {
				asking.Go(func() {
					ask := func(path string, want int) {
						if a, err := ask(clients, "http://"+address+path); err != nil || a.status != want {
							t.Errorf("%s by way of %s: %d %s, %v", path, name, a.status, a.body, err)
						}
					}
					for !inUse.Load() {
						ask("/api/blocks/latest?min_slot=1000000&wait_ms=1000", http.StatusServiceUnavailable)
					}
					for range 3 {
						time.Sleep(kept + time.Duration(i-conns/2)*4*time.Millisecond)
						ask("/api/status", http.StatusOK)
					}
				})
			}
			v.until("each request has a connection of the node", func() bool { return v.metric("ledgerd_http_connections") >= conns })
			inUse.Store(true)
			asking.Wait()
			v.until("the proxy has ended its connections", func() bool { return v.metric("ledgerd_http_connections") == 0 })
			ledgertest.Equal(t, node.ends.Load(), 0, "connections that the node was the first to end")
			ledgertest.Equal(t, v.metric(`ledgerd_http_connections_refused_total{cap="client"}`), 0, "connections that were refused")
		})
	}
}
