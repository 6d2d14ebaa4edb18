package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/proc"
)

// stream is the name of the cluster's log.
const stream = "LEDGER"

// natsServers is how many hold the log: each record is on three.
const natsServers = 3

// Groups are stopped one after the other, the last one first.
const (
	logGroup = iota
	nodeGroup
	balancerGroup
)

// daemon is one process of the cluster.
type daemon struct {
	name  string
	group int
	argv  []string
}

// node is where one ledgerd is.
type node struct {
	name      string
	port, ops int
	reads     bool // a replica
}

// plan says what runs where.
type plan struct {
	dir     string
	port    int // the balancer's; 0: there is none
	nodes   []node
	nats    []*proc.NATSServer
	files   map[string]string // configurations, by path
	daemons []daemon          // in the order they are started
}

// plan decides everything, and refuses ports that are taken. Nothing is written yet.
func (c *command) plan() (*plan, error) {
	ledgerd, err := find(c.Ledgerd, "ledgerd")
	if err != nil {
		return nil, err
	}
	nats, err := find(c.NATSServer, "nats-server")
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot tell where --dir is: %w", err)
	}
	p := &plan{dir: dir, files: make(map[string]string)}
	for i := range natsServers {
		name := fmt.Sprintf("nats-%d", i+1)
		s := &proc.NATSServer{Name: name, Listen: local(c.Port + 200 + i), Store: filepath.Join(dir, name), Route: local(c.Port + 210 + i)}
		for j := range natsServers {
			if j != i {
				s.Routes = append(s.Routes, local(c.Port+210+j))
			}
		}
		p.nats = append(p.nats, s)
		p.files[s.Store+".conf"] = s.Config()
		p.daemons = append(p.daemons, daemon{name, logGroup, []string{nats, "--config", s.Store + ".conf"}})
	}
	for i := range c.Ingesters + c.Replicas {
		n := node{name: fmt.Sprintf("ingester-%d", i+1), port: c.Port + 1 + i, ops: c.Port + 101 + i}
		if n.reads = i >= c.Ingesters; n.reads {
			n.name = fmt.Sprintf("replica-%d", i-c.Ingesters+1)
		}
		p.nodes = append(p.nodes, n)
		p.daemons = append(p.daemons, daemon{n.name, nodeGroup, append([]string{ledgerd}, c.serve(p, n)...)})
	}
	if err := p.balance(c); err != nil {
		return nil, err
	}
	return p, p.portsAreFree()
}

// serve returns a node's arguments.
func (c *command) serve(p *plan, n node) []string {
	servers := make([]string, len(p.nats))
	for i, s := range p.nats {
		servers[i] = s.Listen
	}
	source, role := c.Source, "ingest"
	if n.reads {
		source, role = "none", "replica"
	}
	return append([]string{
		"serve", "--listen", local(n.port), "--ops-listen", local(n.ops), "--data-dir", filepath.Join(p.dir, n.name),
		"--source", source, "--role", role, "--log", "nats://" + strings.Join(servers, ",") + "/" + stream,
		"--trusted-proxies", "127.0.0.0/8",
	}, c.Args...)
}

// balance adds haproxy, if it is wanted: "auto" does without where it is not installed.
func (p *plan) balance(c *command) error {
	if c.Balancer == "none" {
		return nil
	}
	path, err := exec.LookPath("haproxy")
	if err != nil {
		if c.Balancer == "auto" {
			return nil
		}
		return errors.New("haproxy is not installed: Debian has it as a package of that name")
	}
	p.port = c.Port
	file := filepath.Join(p.dir, "haproxy.conf")
	p.files[file] = haproxyConfig(p)
	p.daemons = append(p.daemons, daemon{"haproxy", balancerGroup, []string{path, "-f", file}})
	return nil
}

// readers returns the nodes that the balancer sends clients to: the replicas, or without any the ingesters.
func (p *plan) readers() (readers, spare []node) {
	for _, n := range p.nodes {
		if n.reads {
			readers = append(readers, n)
		} else {
			spare = append(spare, n)
		}
	}
	if len(readers) == 0 {
		return spare, nil
	}
	return readers, spare
}

// portsAreFree tries them: a process that cannot listen would be started again and again.
func (p *plan) portsAreFree() error {
	var addresses []string
	for _, n := range p.nodes {
		addresses = append(addresses, local(n.port), local(n.ops))
	}
	for _, s := range p.nats {
		addresses = append(addresses, s.Listen, s.Route)
	}
	if p.port != 0 {
		addresses = append(addresses, local(p.port))
	}
	for _, address := range addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("%s is taken, choose others with --port: %w", address, err)
		}
		l.Close()
	}
	return nil
}

// write makes the directories and the configurations.
func (p *plan) write() error {
	err := os.MkdirAll(filepath.Join(p.dir, "logs"), 0o755)
	for path, content := range p.files {
		err = errors.Join(err, os.WriteFile(path, []byte(content), 0o644))
	}
	if err != nil {
		return fmt.Errorf("cannot write the configurations: %w", err)
	}
	return nil
}

func (p *plan) logFile(name string) string { return filepath.Join(p.dir, "logs", name+".log") }

// announce says where everything is.
func (p *plan) announce(out io.Writer) {
	fmt.Fprintln(out)
	if p.port != 0 {
		fmt.Fprintf(out, "  haproxy      http://%s/api/status   ws://%s/api/ws/accounts\n", local(p.port), local(p.port))
	} else {
		fmt.Fprintln(out, "  no balancer: haproxy is not installed, or not wanted")
	}
	for _, n := range p.nodes {
		fmt.Fprintf(out, "  %-12s http://%s/api/status   http://%s/metrics  /readyz\n", n.name, local(n.port), local(n.ops))
	}
	for _, s := range p.nats {
		fmt.Fprintf(out, "  %-12s nats://%s\n", s.Name, s.Listen)
	}
	fmt.Fprintf(out, "\n  data and logs: %s\n  Ctrl-C stops everything.\n\n", p.dir)
}

// untilReady waits until every node says that it is, and reports whether that came before ctx ended.
func (p *plan) untilReady(ctx context.Context) bool {
	client := &http.Client{Timeout: time.Second}
	for _, n := range p.nodes {
		for !isReady(ctx, client, n) {
			select {
			case <-time.After(readyEvery):
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

const readyEvery = 100 * time.Millisecond

func isReady(ctx context.Context, client *http.Client, n node) bool {
	status, _, err := proc.Get(ctx, client, "http://"+local(n.ops)+"/readyz")
	return err == nil && status == http.StatusOK
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
