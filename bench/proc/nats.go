package proc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// NATSServer is one nats-server of a group, as its configuration says it.
type NATSServer struct {
	Name    string
	Listen  string   // where clients reach it
	Monitor string   // where it answers /healthz; "": nowhere
	Store   string   // the directory of its JetStream; "": it has none
	Route   string   // where others of its group reach it
	Routes  []string // addresses at which it reaches them; none: it is alone
	Private bool     // it tells nobody another way to reach it than Route
	Lines   []string // more of the configuration
}

// Config returns the configuration. What a server acknowledges is on its disk: by default it would only be in the machine's memory,
// and three machines that lose power lose it.
func (s *NATSServer) Config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %q\nlisten: %q\n", s.Name, s.Listen)
	if s.Monitor != "" {
		fmt.Fprintf(&b, "http: %q\n", s.Monitor)
	}
	if s.Store != "" {
		fmt.Fprintf(&b, "jetstream {\n  store_dir: %q\n  sync_interval: always\n}\n", s.Store)
	}
	if len(s.Routes) > 0 {
		fmt.Fprintf(&b, "cluster {\n  name: ledgerd\n  listen: %q\n", s.Route)
		if s.Private {
			b.WriteString("  advertise: \"127.0.0.1:1\"\n  no_advertise: true\n")
		}
		fmt.Fprintf(&b, "  routes: [\"nats://%s\"]\n}\n", strings.Join(s.Routes, `", "nats://`))
	}
	for _, line := range s.Lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// NATSOptions say what a group of nats-servers is like. The zero value is one server.
type NATSOptions struct {
	Dir     string   // where all they keep is made; "": the system's place for such
	Servers int      // 0: 1
	Lines   []string // more of their configurations
	// Reach returns the address at which one server reaches another, whose own is given; nil: that is the address.
	Reach func(from, to int, address string) string
}

// NATS is a group of nats-servers with JetStream on free ports of this machine, each of which can be killed and started again where it stood.
type NATS struct {
	ctx     context.Context
	program string
	dir     string
	members []*natsMember
	held    []net.Listener // so that nobody else is given the same ports
}

type natsMember struct {
	NATSServer
	*Process // nil: it does not run
}

// natsReadyTimeout is long: a machine may be busy, and a vote among servers takes up to nine seconds, more than once where nobody wins.
const natsReadyTimeout = 2 * time.Minute

// StartNATS starts servers and waits until they are ready. They end with ctx at the latest; what they hold goes with Stop.
func StartNATS(ctx context.Context, program string, o NATSOptions) (*NATS, error) {
	dir, err := os.MkdirTemp(o.Dir, "ledgerd-nats-")
	if err != nil {
		return nil, fmt.Errorf("cannot start nats-server: %w", err)
	}
	n := &NATS{ctx: ctx, program: program, dir: dir}
	err = n.plan(o)
	for i := range n.members {
		if err == nil {
			err = n.Restart(i)
		}
	}
	if err == nil {
		err = n.Ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start nats-server: %w", err), n.Stop())
	}
	return n, nil
}

// plan gives the servers addresses and configurations.
func (n *NATS) plan(o NATSOptions) error {
	for i := range max(o.Servers, 1) {
		m := &natsMember{NATSServer: NATSServer{Name: fmt.Sprintf("s%d", i), Private: o.Reach != nil, Lines: o.Lines}}
		m.Store = filepath.Join(n.dir, m.Name)
		for _, address := range []*string{&m.Listen, &m.Monitor, &m.Route} {
			var err error
			if *address, err = n.freeAddress(); err != nil {
				return err
			}
		}
		n.members = append(n.members, m)
	}
	for i, m := range n.members {
		for j, other := range n.members {
			switch {
			case i == j:
			case o.Reach == nil:
				m.Routes = append(m.Routes, other.Route)
			default:
				m.Routes = append(m.Routes, o.Reach(i, j, other.Route))
			}
		}
		if err := os.WriteFile(m.Store+".conf", []byte(m.Config()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// freeAddress returns an address of this machine that nobody listens at, outside of the ports that the kernel gives to connections: a server
// that was killed finds it free again. The port ten thousand above is held until the end, which keeps other processes that ask so from
// being given the same.
func (n *NATS) freeAddress() (string, error) {
	for tries := 0; ; tries++ {
		port := 10_000 + rand.IntN(10_000)
		held, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10_000))
		if err == nil {
			n.held = append(n.held, held)
			var l net.Listener
			if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				return l.Addr().String(), l.Close()
			}
		}
		if tries == 100 {
			return "", fmt.Errorf("no port is free: %w", err)
		}
	}
}

// Addresses returns where clients reach the servers: HOST:PORT.
func (n *NATS) Addresses() (addresses []string) {
	for _, m := range n.members {
		addresses = append(addresses, m.Listen)
	}
	return addresses
}

// Pids returns the processes of those that run.
func (n *NATS) Pids() (pids []int) {
	for _, m := range n.members {
		if m.Process != nil {
			pids = append(pids, m.Pid())
		}
	}
	return pids
}

// Index returns which server has a name, as JetStream tells of leaders; -1: none.
func (n *NATS) Index(name string) int {
	return slices.IndexFunc(n.members, func(m *natsMember) bool { return m.Name == name })
}

// Store returns the directory of a server's JetStream.
func (n *NATS) Store(i int) string { return n.members[i].Store }

// Said returns what a server said last, through all of its processes.
func (n *NATS) Said(i int) string {
	said, err := os.ReadFile(n.members[i].Store + ".log")
	if err != nil {
		return err.Error()
	}
	return string(said[max(0, len(said)-tailBytes):])
}

// Kill ends a server at once. One that does not run is left alone.
func (n *NATS) Kill(i int) {
	if m := n.members[i]; m.Process != nil {
		m.Process.Kill()
		m.Process = nil
	}
}

// Restart starts a server that does not run, where it stood. It takes clients a moment later.
func (n *NATS) Restart(i int) error {
	m := n.members[i]
	log, err := os.OpenFile(m.Store+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	m.Process, err = Launch(n.ctx, Command{Words: []string{n.program, "--config", m.Store + ".conf"}, Log: log})
	return err
}

// Ready waits until each server that runs answers, and holds all of its streams. Before that a server does not count: should the one
// die that it takes messages from, nobody may be left that can be elected. One that lacks messages cannot, and it gives its vote to none
// whose log ends before its own.
func (n *NATS) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, natsReadyTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	for i, m := range n.members {
		for m.Process != nil {
			status, said, err := Get(ctx, client, "http://"+m.Monitor+"/healthz")
			if err == nil && status == http.StatusOK {
				break
			}
			select {
			case <-m.Gone():
				return fmt.Errorf("%s ended: %s", m.Name, n.Said(i))
			case <-ctx.Done():
				return fmt.Errorf("%s is not ready: %w: %d %s: %s", m.Name, cmp.Or(err, ctx.Err()), status, said, n.Said(i))
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// Stop ends the servers and removes what they hold.
func (n *NATS) Stop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for i, m := range n.members {
		if m.Process != nil {
			if ended := m.Process.Stop(ctx, syscall.SIGINT); ended != nil { // on which it exits with 0
				err = errors.Join(err, fmt.Errorf("%w: %s", ended, n.Said(i)))
			}
		}
	}
	for _, l := range n.held {
		_ = l.Close()
	}
	if removed := os.RemoveAll(n.dir); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
