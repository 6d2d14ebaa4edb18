package main

import (
	"fmt"
	"strings"
	"syscall"
)

// haproxyConfig returns a configuration that sends clients to replicas that are ready, and to the
// ingesters where none is.
func haproxyConfig(p *plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, `global
    maxconn %d
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
    timeout tunnel 1h
    timeout check 1s
    option redispatch
    option forwardfor
    retries 2
frontend public
    bind %s
    use_backend stale if { nbsrv(nodes) eq 0 }
    default_backend nodes
backend nodes
    balance leastconn
    option httpchk GET /readyz
    http-check expect status 200
    default-server inter 500ms fall 2 rise 1
`, connections(), local(p.port))
	readers, spare := p.readers()
	for _, n := range readers {
		fmt.Fprintf(&b, "    server %s %s check port %d\n", n.name, local(n.port), n.ops)
	}
	for _, n := range spare {
		fmt.Fprintf(&b, "    server %s %s check port %d backup\n", n.name, local(n.port), n.ops)
	}
	b.WriteString("# While no node is up to date, as when the log is led by nobody, any of them answers what it holds.\nbackend stale\n    balance leastconn\n")
	for _, n := range append(readers, spare...) {
		fmt.Fprintf(&b, "    server %s %s\n", n.name, local(n.port))
	}
	return b.String()
}

// connections returns how many clients a balancer can have: each takes two files.
func connections() int {
	const most, others = 20_000, 200
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1000
	}
	return int(min(most, (max(limit.Max, 2*others)-others)/2))
}
