package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
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
	*Process             // nil: it does not run
	said     *Transcript // of its last process
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
	reach := o.Reach
	if reach == nil {
		reach = func(_, _ int, address string) string { return address }
	}
	for i := range max(o.Servers, 1) {
		m := &natsMember{NATSServer: NATSServer{Name: fmt.Sprintf("s%d", i), Private: o.Reach != nil, Lines: o.Lines}}
		m.Store = filepath.Join(n.dir, m.Name)
		for _, address := range []*string{&m.Listen, &m.Monitor, &m.Route} {
			free, held, err := FreeAddress()
			if err != nil {
				return err
			}
			n.held, *address = append(n.held, held), free.String()
		}
		n.members = append(n.members, m)
	}
	for i, m := range n.members {
		for j, other := range n.members {
			if i != j {
				m.Routes = append(m.Routes, reach(i, j, other.Route))
			}
		}
		if err := os.WriteFile(m.Store+".conf", []byte(m.Config()), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// FreeAddress returns an address of this machine that nobody listens at, outside of the ports that the kernel gives to connections: a server
// that was killed finds it free again. As long as held is open, which is the port ten thousand above, nobody else is given the same.
func FreeAddress() (free netip.AddrPort, held net.Listener, err error) {
	for tries := 0; ; tries++ {
		port := 10_000 + rand.IntN(10_000)
		held, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10_000))
		if err == nil {
			var l net.Listener
			if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
				return l.Addr().(*net.TCPAddr).AddrPort(), held, l.Close()
			}
			_ = held.Close()
		}
		if tries == 100 {
			return free, nil, fmt.Errorf("no port is free: %w", err)
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

// Store returns the directory of a server's JetStream.
func (n *NATS) Store(i int) string { return n.members[i].Store }

// Said returns what the last process of a server said last.
func (n *NATS) Said(i int) string {
	if said := n.members[i].said; said != nil {
		return said.Tail()
	}
	return ""
}

// Kill ends a server at once. One that does not run is left alone.
func (n *NATS) Kill(i int) {
	if m := n.members[i]; m.Process != nil {
		m.Process.Kill()
		m.Process = nil
	}
}

// Restart starts a server that does not run, where it stood. It takes clients a moment later.
func (n *NATS) Restart(i int) (err error) {
	m := n.members[i]
	if m.Process, err = Launch(n.ctx, Command{Words: []string{n.program, "--config", m.Store + ".conf"}}); err == nil {
		m.said = m.Err
	}
	return err
}

// Ready waits until each server that runs answers, and holds all of its streams. Before that a server does not count: should the one
// die that it takes messages from, nobody may be left that can be elected. One that lacks messages cannot, and it gives its vote to none
// whose log ends before its own.
func (n *NATS) Ready(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	for _, m := range n.members {
		if m.Process == nil {
			continue
		}
		err := m.Until(ctx, natsReadyTimeout, 10*time.Millisecond, func(ctx context.Context) error {
			_, err := getOK(ctx, client, "http://"+m.Monitor+"/healthz")
			return err
		})
		if err != nil {
			return fmt.Errorf("%s is not ready: %w", m.Name, err)
		}
	}
	return nil
}

// Stop ends the servers and removes what they hold.
func (n *NATS) Stop() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, m := range n.members {
		if m.Process != nil {
			err = errors.Join(err, m.Process.Stop(ctx, syscall.SIGINT)) // on which it exits with 0
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
