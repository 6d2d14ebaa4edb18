package natstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

const (
	// patience bounds every wait for servers. It is long: a machine may be busy, and a vote among servers takes up to
	// nine seconds, more than once where nobody wins.
	patience = 2 * time.Minute
	glance   = 10 * time.Millisecond // between two looks while waiting
)

// Servers is a cluster of nats-servers. Its methods are for the test's goroutine.
type Servers struct {
	t       testing.TB
	program string
	members []*server
	routes  map[[2]int]*Proxy // from the first to the second
	lines   []string          // that their configurations have beside the rest
}

type server struct {
	name, dir, config       string
	clients, routes, health string // addresses
	logs                    string // the file of what it says
	process                 *exec.Cmd
	ended                   chan struct{} // closed when the process is gone
}

// Start starts n servers that end with the test, and waits until they are ready. The lines are added to their configuration.
func Start(t testing.TB, n int, lines ...string) *Servers {
	t.Helper()
	s := &Servers{t: t, program: Program(t), routes: make(map[[2]int]*Proxy), lines: lines}
	dir := storeDir(t)
	for i := range n {
		m := &server{name: fmt.Sprintf("s%d", i), dir: filepath.Join(dir, fmt.Sprint(i)), clients: freeAddr(t), routes: freeAddr(t), health: freeAddr(t)}
		m.config, m.logs = m.dir+".conf", m.dir+".log"
		s.members = append(s.members, m)
	}
	for i := range n {
		for j := range n {
			if i != j {
				s.routes[[2]int{i, j}] = NewProxy(t, s.members[j].routes)
			}
		}
	}
	t.Cleanup(func() {
		for i := range s.members {
			s.Kill(i)
		}
		for _, m := range s.members {
			if t.Failed() {
				said, err := os.ReadFile(m.logs)
				t.Logf("what %s said last (%v):\n%s", m.name, err, said[max(0, len(said)-4<<10):])
			}
		}
	})
	for i, m := range s.members {
		noErr(t, os.WriteFile(m.config, s.configOf(i), 0o600))
		s.Restart(i)
	}
	s.WaitReady()
	return s
}

// storeDir returns a directory that ends with the test: in memory where there is room, because a server syncs every message, and
// what a killed process wrote is there without that.
func storeDir(t testing.TB) string {
	t.Helper()
	const memory, room = "/dev/shm", 4 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= room {
		if dir, err := os.MkdirTemp(memory, "ledgerd-nats-"); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			return dir
		}
	}
	return t.TempDir()
}

// freeAddr returns a loopback address that nobody listens at, outside of the ports that the kernel gives to connections: a
// server that was killed finds it free again. The port ten thousand above is held until the test ends, which keeps others from
// being given the same, in this process and in those that test other packages.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := 10_000 + rand.IntN(10_000)
		held, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10_000))
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			_ = held.Close()
			continue
		}
		_ = l.Close()
		t.Cleanup(func() { _ = held.Close() })
		return l.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}

// configOf returns the configuration of a server. It reaches each other through a proxy; what a server says of its own
// address leads nowhere, so that there is no other way.
func (s *Servers) configOf(i int) []byte {
	m := s.members[i]
	var b bytes.Buffer
	fmt.Fprintf(&b, "server_name: %q\nlisten: %q\nhttp: %q\nmax_payload: 1MB\n", m.name, m.clients, m.health)
	fmt.Fprintf(&b, "jetstream { store_dir: %q, sync_interval: always, max_memory_store: 64MB, max_file_store: 4GB }\n", m.dir)
	for _, line := range s.lines {
		fmt.Fprintln(&b, line)
	}
	if len(s.members) == 1 {
		return b.Bytes()
	}
	fmt.Fprintf(&b, "cluster { name: test, listen: %q, advertise: \"127.0.0.1:1\", no_advertise: true, routes: [", m.routes)
	for j := range s.members {
		if p := s.routes[[2]int{i, j}]; p != nil {
			fmt.Fprintf(&b, "%q, ", "nats-route://"+p.Addr())
		}
	}
	b.WriteString("] }\n")
	return b.Bytes()
}

// URL returns where clients reach a server.
func (s *Servers) URL(i int) string { return "nats://" + s.members[i].clients }

// Addr returns the address at which a server takes clients.
func (s *Servers) Addr(i int) string { return s.members[i].clients }

// URLs returns where clients reach the servers.
func (s *Servers) URLs() []string {
	urls := make([]string, len(s.members))
	for i := range urls {
		urls[i] = s.URL(i)
	}
	return urls
}

// Index returns which server has a name, as JetStream tells of leaders; -1: none.
func (s *Servers) Index(name string) int {
	return slices.IndexFunc(s.members, func(m *server) bool { return m.name == name })
}

// Kill ends a server with SIGKILL. One that does not run is left alone.
func (s *Servers) Kill(i int) {
	m := s.members[i]
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	<-m.ended
	m.process = nil
}

// Restart starts a server that does not run, where it stood. It takes clients a moment later.
func (s *Servers) Restart(i int) {
	s.t.Helper()
	m := s.members[i]
	log, err := os.OpenFile(m.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	noErr(s.t, err)
	defer log.Close()
	process := exec.Command(s.program, "--config", m.config)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = dieWithUs()
	noErr(s.t, process.Start())
	m.process, m.ended = process, make(chan struct{})
	go func(ended chan struct{}) {
		_ = process.Wait()
		close(ended)
	}(m.ended)
}

// Save keeps what a server that does not run has on disk. What it returns puts that back, also where it does not run: as a
// disk that lost what came after, or a backup.
func (s *Servers) Save(i int) (restore func()) {
	s.t.Helper()
	m := s.members[i]
	kept := filepath.Join(s.t.TempDir(), "kept")
	noErr(s.t, os.CopyFS(kept, os.DirFS(m.dir)))
	return func() {
		s.t.Helper()
		noErr(s.t, errors.Join(os.RemoveAll(m.dir), os.CopyFS(m.dir, os.DirFS(kept))))
	}
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

// WaitReady waits until JetStream answers through each server that runs, and each holds all of its streams. Before that a server
// does not count: should the one die that it takes messages from, nobody may be left that can be elected. One that lacks
// messages cannot, and it gives its vote to none whose log ends before its own.
func (s *Servers) WaitReady() {
	s.t.Helper()
	for _, m := range s.members {
		for start := time.Now(); m.process != nil; time.Sleep(glance) {
			err := m.healthy()
			if err == nil {
				break
			}
			if time.Since(start) > patience {
				s.t.Fatalf("it never came that %s holds all of its streams: %v", m.name, err)
			}
		}
	}
}

// healthy asks a server whether it holds all that it should.
func (m *server) healthy() error {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + m.health + "/healthz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	says, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	return errors.Join(fmt.Errorf("it answers %s: %s", answer.Status, says), err)
}

// Eventually waits until something holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(glance) {
		if time.Since(start) > patience {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// noErr ends the test with an error, if there is one.
func noErr(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
