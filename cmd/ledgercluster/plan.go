package main

import (
	"embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"

	"ledgerd/bench/proc"
)

// natsServers is how many hold the log: each record is on three.
const natsServers = 3

// daemon is one process of the cluster.
type daemon struct {
	name string
	argv []string
}

// node is where one ledgerd is.
type node struct {
	Name      string
	Port, Ops int
	Reads     bool // a replica
}

// plan says what runs where.
type plan struct {
	Dir      string
	Balancer int // its port; 0: there is none
	Nodes    []node
	NATS     []*proc.NATSServer
	daemons  []daemon // in the order in which they are started
	taken    error    // why a port cannot be had
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
	p := &plan{Dir: c.Dir}
	var servers []string
	for i := range natsServers {
		name := fmt.Sprintf("nats-%d", i+1)
		s := &proc.NATSServer{Name: name, Listen: p.take(c.Port + 200 + i), Store: filepath.Join(p.Dir, name), Route: p.take(c.Port + 210 + i)}
		for j := range natsServers {
			if j != i {
				s.Routes = append(s.Routes, local(c.Port+210+j))
			}
		}
		servers, p.NATS = append(servers, s.Listen), append(p.NATS, s)
		p.daemons = append(p.daemons, daemon{name, []string{nats, "--config", s.Store + ".conf"}})
	}
	for i := range c.Ingesters + c.Replicas {
		n := node{Name: fmt.Sprintf("ingester-%d", i+1), Port: c.Port + 1 + i, Ops: c.Port + 101 + i}
		source, role := c.Source, "ingest"
		if n.Reads = i >= c.Ingesters; n.Reads {
			n.Name = fmt.Sprintf("replica-%d", i-c.Ingesters+1)
			source, role = "none", "replica"
		}
		p.Nodes = append(p.Nodes, n)
		p.daemons = append(p.daemons, daemon{n.Name, append([]string{
			ledgerd, "serve", "--listen", p.take(n.Port), "--ops-listen", p.take(n.Ops), "--ops-advertise", "127.0.0.1", "--data-dir", filepath.Join(p.Dir, n.Name),
			"--source", source, "--role", role, "--log", "nats://" + strings.Join(servers, ",") + "/LEDGER",
		}, c.Args...)})
	}
	if err := p.balance(c); err != nil {
		return nil, err
	}
	return p, p.taken
}

// balance adds haproxy, if it is wanted: "auto" does without where it is not installed.
func (p *plan) balance(c *command) error {
	path, err := proc.Find("haproxy", "")
	switch {
	case c.Balancer == "none" || err != nil && c.Balancer == "auto":
		return nil
	case err != nil:
		return errors.New("haproxy is not installed: Debian has it as a package of that name")
	}
	p.Balancer = c.Port
	p.take(p.Balancer)
	p.daemons = append(p.daemons, daemon{"haproxy", []string{path, "-f", p.balancerFile()}})
	return nil
}

func (p *plan) balancerFile() string { return filepath.Join(p.Dir, "haproxy.conf") }

// take returns the address of a port, which must be free: a process that cannot listen would be started again and again.
func (p *plan) take(port int) string {
	l, err := net.Listen("tcp", local(port))
	if err == nil {
		err = l.Close()
	}
	if err != nil && p.taken == nil {
		p.taken = fmt.Errorf("%s is taken, choose others with --port: %w", local(port), err)
	}
	return local(port)
}

//go:embed *.tmpl
var textFiles embed.FS

// texts are haproxy's configuration and what a person is told of a plan.
var texts = template.Must(template.New("").Funcs(template.FuncMap{"local": local}).ParseFS(textFiles, "*.tmpl"))

// write makes the directories and the configurations.
func (p *plan) write() error {
	err := os.MkdirAll(filepath.Join(p.Dir, "logs"), 0o755)
	for _, s := range p.NATS {
		err = errors.Join(err, os.WriteFile(s.Store+".conf", []byte(s.Config()), 0o644))
	}
	if p.Balancer != 0 {
		var text strings.Builder
		err = errors.Join(err, texts.ExecuteTemplate(&text, "haproxy.conf.tmpl", p), os.WriteFile(p.balancerFile(), []byte(text.String()), 0o644))
	}
	if err != nil {
		return fmt.Errorf("cannot write the configurations: %w", err)
	}
	return nil
}

func (p *plan) logFile(name string) string { return filepath.Join(p.Dir, "logs", name+".log") }

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
