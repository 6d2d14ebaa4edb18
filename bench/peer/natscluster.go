package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// natsClusterSize is how many servers hold each message of a log.
const natsClusterSize = 3

// natsClusterConfig makes a server one of several. What it acknowledges is on its disk.
const natsClusterConfig = `server_name: "nats-%d"
listen: %q
jetstream { store_dir: %q, sync_interval: always }
cluster { name: bench, listen: %q, routes: [%s] }
`

// NATSCluster is nats-servers that hold logs together.
type NATSCluster struct {
	dir     string
	servers []*process
	addrs   []string
}

// StartNATSCluster starts three servers that hold their logs in c.Dir, and end with ctx at the
// latest. It returns an *AbsentError if there is no nats-server.
func StartNATSCluster(ctx context.Context, c Config) (*NATSCluster, error) {
	program, err := FindNATS(c.Self[0])
	if err != nil {
		return nil, err
	}
	addrs, err := freeAddresses(2 * natsClusterSize)
	if err != nil {
		return nil, err
	}
	n := &NATSCluster{addrs: addrs[:natsClusterSize]}
	routes := addrs[natsClusterSize:]
	if n.dir, err = os.MkdirTemp(c.Dir, "nats-"); err != nil {
		return nil, err
	}
	for i := range natsClusterSize {
		config := filepath.Join(n.dir, fmt.Sprintf("nats-%d.conf", i))
		text := fmt.Sprintf(natsClusterConfig, i, n.addrs[i], filepath.Join(n.dir, fmt.Sprint(i)), routes[i], `"nats://`+strings.Join(routes, `", "nats://`)+`"`)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return nil, errors.Join(err, n.Stop())
		}
		p, err := launch(exec.CommandContext(ctx, program, "--config", config))
		if err != nil {
			return nil, errors.Join(err, n.Stop())
		}
		n.servers = append(n.servers, p)
	}
	for i, p := range n.servers {
		if err := untilListening(ctx, p, n.addrs[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("nats-server %d: %w: %s", i, err, &p.stderr), n.Stop())
		}
	}
	return n, nil
}

// freeAddresses returns so many addresses of this machine at which nobody listens, outside of the ports that the
// kernel gives to connections.
func freeAddresses(count int) (addrs []string, err error) {
	for tries := 0; len(addrs) < count; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000)))
		if err == nil {
			defer l.Close() // all at the end, so that they differ
			addrs = append(addrs, l.Addr().String())
		} else if tries > 100 {
			return nil, fmt.Errorf("no ports are free: %w", err)
		}
	}
	return addrs, nil
}

// untilListening waits until a process listens at an address.
func untilListening(ctx context.Context, p *process, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, natsStartPatience)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w", err)
		case <-p.ended:
			return errors.New("it ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Addresses returns where the servers listen for clients.
func (n *NATSCluster) Addresses() []string { return slices.Clone(n.addrs) }

// Pids returns their processes.
func (n *NATSCluster) Pids() (pids []int) {
	for _, p := range n.servers {
		pids = append(pids, p.Pid())
	}
	return pids
}

// Stop ends the servers and removes what they hold.
func (n *NATSCluster) Stop() (err error) {
	for _, p := range n.servers {
		err = errors.Join(err, p.stop(syscall.SIGINT))
	}
	return errors.Join(err, os.RemoveAll(n.dir))
}
