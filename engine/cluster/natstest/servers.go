package natstest

import (
	"context"
	"syscall"
	"testing"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger/ledgertest"
)

const (
	// patience bounds every wait. It is long: a machine may be busy.
	patience = 2 * time.Minute
	glance   = 10 * time.Millisecond // between two looks while waiting
)

// Servers is a cluster of nats-servers. Its methods are for the test's goroutine.
type Servers struct {
	*proc.NATS
	t      testing.TB
	routes map[[2]int]*Proxy // from the first to the second
	said   map[int]string    // by servers that were killed, last
}

// Start starts n servers that end with the test, and waits until they are ready. The lines are added to their configuration.
func Start(t testing.TB, n int, lines ...string) *Servers {
	t.Helper()
	s := &Servers{t: t, routes: make(map[[2]int]*Proxy), said: make(map[int]string)}
	var err error
	s.NATS, err = proc.StartNATS(context.Background(), Program(t), proc.NATSOptions{
		Dir: storeDir(t), Servers: n, Lines: lines,
		Reach: func(from, to int, address string) string {
			p := NewProxy(t, address)
			s.routes[[2]int{from, to}] = p
			return p.Addr()
		},
	})
	must(t, err)
	t.Cleanup(func() {
		for i := range n {
			s.Kill(i)
			if t.Failed() {
				t.Logf("what server %d said last:\n%s", i, s.said[i])
			}
		}
		must(t, s.Stop())
	})
	return s
}

// storeDir returns a directory that ends with the test: in memory where there is room, because a server syncs every message, and
// what a killed process wrote is there without that.
func storeDir(t testing.TB) string {
	t.Helper()
	const memory, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= room {
		return memory
	}
	return t.TempDir()
}

// Addr returns the address at which a server takes clients.
func (s *Servers) Addr(i int) string { return s.Addresses()[i] }

// URL returns where clients reach a server.
func (s *Servers) URL(i int) string { return "nats://" + s.Addr(i) }

// URLs returns where clients reach the servers.
func (s *Servers) URLs() (urls []string) {
	for i := range s.Addresses() {
		urls = append(urls, s.URL(i))
	}
	return urls
}

// Store returns the directory of a server's JetStream.
func (s *Servers) Store(i int) string { return s.Members[i].Store }

// Kill ends a server at once. One that does not run is left alone.
func (s *Servers) Kill(i int) {
	if m := s.Members[i]; m.Process != nil {
		m.Process.Kill()
		s.said[i], m.Process = m.Err.Tail(), nil
	}
}

// Restart starts a server that does not run, where it stood. It takes clients a moment later.
func (s *Servers) Restart(i int) {
	s.t.Helper()
	must(s.t, s.NATS.Restart(i))
}

// WaitReady waits until each server that runs is ready.
func (s *Servers) WaitReady() {
	s.t.Helper()
	must(s.t, s.Ready(s.t.Context()))
}

// Isolate cuts a server off from the others; its clients still reach it.
func (s *Servers) Isolate(i int) {
	for pair, p := range s.routes {
		if pair[0] == i || pair[1] == i {
			p.Cut()
		}
	}
}

// Heal connects all servers again.
func (s *Servers) Heal() {
	for _, p := range s.routes {
		p.Heal()
	}
}

// Eventually waits until something holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(glance) {
		ledgertest.MustHold(t, time.Since(start) <= patience, "it never came that %s", what)
	}
}

var must = ledgertest.Must
