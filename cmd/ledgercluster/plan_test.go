package main

import (
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"testing"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger/ledgertest"
)

// planned returns a plan whose programs need not be there.
func planned(t *testing.T, c command) *plan {
	t.Helper()
	c.Ledgerd, c.NATSServer, c.Dir, c.Port = "/bin/true", "/bin/true", t.TempDir(), freePorts(t)
	p, err := c.plan()
	must(t, err)
	must(t, p.write())
	return p
}

// freePorts returns where a cluster finds its ports.
func freePorts(t *testing.T) int {
	t.Helper()
	for range 100 {
		c := command{Ledgerd: "/bin/true", NATSServer: "/bin/true", Port: 20_000 + rand.IntN(12_000), Ingesters: 9, Replicas: 9, Balancer: "none"}
		if _, err := c.plan(); err == nil {
			return c.Port
		}
	}
	t.Fatal("no ports are free")
	return 0
}

func TestPlanTakesOnlyFreePorts(t *testing.T) {
	port := freePorts(t)
	l, err := net.Listen("tcp", local(port+202))
	must(t, err)
	defer l.Close()
	c := command{Ledgerd: "/bin/true", NATSServer: "/bin/true", Dir: t.TempDir(), Port: port, Ingesters: 2, Replicas: 3, Balancer: "none"}
	_, err = c.plan()
	ledgertest.ErrorSays(t, err, "is taken, choose others with --port", "with the third nats-server's port taken")
}

// Two clusters in one directory would share the stores of nats-servers, which do not refuse that, and write each other's configurations.
func TestADirectoryIsOfOneCluster(t *testing.T) {
	c := command{Ledgerd: "/bin/true", NATSServer: "/bin/true", Dir: t.TempDir(), Port: freePorts(t), Ingesters: 1, Balancer: "none"}
	lock, err := c.lock()
	must(t, err)
	ledgertest.ErrorSays(t, c.run(t.Context(), io.Discard), c.Dir+" is in use by another ledgercluster", "while one runs")
	must(t, lock.Close())
	lock, err = c.lock()
	must(t, err)
	must(t, lock.Close())
}

// Every node is told of every server of the log; replicas follow no source.
func TestPlanTellsNodesTheirRoles(t *testing.T) {
	p := planned(t, command{Ingesters: 2, Replicas: 3, Source: "sim:seed=7", Balancer: "none", Args: []string{"--log-level", "debug"}})
	if len(p.daemons) != 8 || len(p.Nodes) != 5 {
		t.Fatalf("%d daemons, %d nodes", len(p.daemons), len(p.Nodes))
	}
	for i, n := range p.Nodes {
		argv := strings.Join(p.daemons[3+i].argv, " ")
		role, source := "--role ingest", "--source sim:seed=7"
		if n.Reads {
			role, source = "--role replica", "--source none"
		}
		for _, want := range []string{role, source, "--log nats://" + p.NATS[0].Listen + "," + p.NATS[1].Listen + "," + p.NATS[2].Listen + "/LEDGER", "--ops-advertise 127.0.0.1", "--log-level debug"} {
			ledgertest.Contains(t, argv, want, "%s", n.Name)
		}
	}
	for _, s := range p.NATS {
		content := s.Config()
		if !strings.Contains(content, "sync_interval: always") || strings.Count(content, "nats://") != 2 || !strings.Contains(content, s.Route) || strings.Contains(content, "nats://"+s.Route) {
			t.Errorf("%s: %s", s.Name, content)
		}
	}
}

// haproxy itself finds no fault with its configuration. It is found where Debian keeps it, which is not on the search path of users.
func TestBalancerTakesItsConfiguration(t *testing.T) {
	haproxy, err := proc.Find("haproxy", "")
	if err != nil {
		t.Skip("haproxy is not installed here")
	}
	if strings.HasPrefix(haproxy, "/usr/sbin/") {
		t.Setenv("PATH", "/usr/bin")
	}
	p := planned(t, command{Ingesters: 2, Replicas: 3, Balancer: "haproxy"})
	if text, err := exec.Command(haproxy, "-c", "-f", p.balancerFile()).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
