package proc

import (
	"context"
	_ "embed"
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
	"text/template"
	"time"
)

// NATSServer is one nats-server of a group, as its configuration says it.
type NATSServer struct {
	Name    string
	Listen  string   // where clients reach it
	Monitor string   // where it answers /healthz; "": nowhere
	Store   string   // the directory of its JetStream
	Route   string   // where others of its group reach it
	Routes  []string // addresses at which it reaches them; none: it is alone
	Private bool     // it tells nobody another way to reach it than Route
	Lines   []string // more of the configuration
}

//go:embed nats.conf.tmpl
var natsText string

var natsConfig = template.Must(template.New("nats.conf").Parse(natsText))

// Config returns the configuration.
func (s *NATSServer) Config() string {
	var text strings.Builder
	if err := natsConfig.Execute(&text, s); err != nil {
		panic(err) // the template is wrong
	}
	return text.String()
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
	Members []*NATSMember
	held    []net.Listener // so that nobody else is given the same ports
}

// NATSMember is one of a group. Whoever kills it takes its process away.
type NATSMember struct {
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
	for i := range n.Members {
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
		m := &NATSMember{NATSServer: NATSServer{Name: fmt.Sprintf("s%d", i), Private: o.Reach != nil, Lines: o.Lines}}
		m.Store = filepath.Join(n.dir, m.Name)
		for _, address := range []*string{&m.Listen, &m.Monitor, &m.Route} {
			free, held, err := FreeAddress()
			if err != nil {
				return err
			}
			n.held, *address = append(n.held, held), free.String()
		}
		n.Members = append(n.Members, m)
	}
	for i, m := range n.Members {
		for j, other := range n.Members {
			if route := other.Route; i != j {
				if o.Reach != nil {
					route = o.Reach(i, j, route)
				}
				m.Routes = append(m.Routes, route)
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
	for _, m := range n.Members {
		addresses = append(addresses, m.Listen)
	}
	return addresses
}

// Pids returns the processes of those that run.
func (n *NATS) Pids() (pids []int) {
	for _, m := range n.Members {
		if m.Process != nil {
			pids = append(pids, m.Pid())
		}
	}
	return pids
}

// Restart starts a server that does not run, where it stood. It takes clients a moment later.
func (n *NATS) Restart(i int) (err error) {
	m := n.Members[i]
	m.Process, err = Launch(n.ctx, Command{Words: []string{n.program, "--config", m.Store + ".conf"}})
	return err
}

// Ready waits until each server that runs answers, and holds all of its streams. Before that a server does not count: should the one
// die that it takes messages from, nobody may be left that can be elected. One that lacks messages cannot, and it gives its vote to none
// whose log ends before its own.
func (n *NATS) Ready(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}
	for _, m := range n.Members {
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
	for _, m := range n.Members {
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
