package main

import (
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// cutter passes connections on to a node and cuts each after some bytes, wherever in a frame that is.
type cutter struct {
	listener net.Listener
	to       func() string // the address of a node, empty: there is none
	cuts     atomic.Int64  // that were made
	ends     atomic.Int64  // connections that the node ended first
	most     atomic.Int64  // as long as fewer cuts were made, connections are cut
	least    int           // in bits, of the most bytes that a connection lives
	running  sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
}

// newCutter passes connections on until the test ends. A connection that is cut lives for up to 2^least to 2^(least+7) bytes.
func newCutter(t *testing.T, random *rand.Rand, cuts, least int, to func() string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	c := &cutter{listener: l, random: rand.New(rand.NewPCG(random.Uint64(), 0)), least: least, to: to}
	c.most.Store(int64(cuts))
	c.running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			c.running.Go(func() { c.pass(from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.running.Wait()
	})
	return c
}

// length returns how many bytes a connection lives that is to be cut.
func (c *cutter) length() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.Int64N(1 << (c.least + c.random.IntN(8)))
}

// address returns where a client library connects to.
func (c *cutter) address() string { return "http://" + c.listener.Addr().String() }

// enough makes no more cuts.
func (c *cutter) enough() { c.most.Store(0) }

func (c *cutter) isThrough() bool { return c.cuts.Load() >= c.most.Load() }

func (c *cutter) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.to())
	if err != nil {
		return
	}
	defer to.Close()
	var asking sync.WaitGroup
	var asked atomic.Bool
	asking.Go(func() {
		_, _ = io.Copy(to, from)
		asked.Store(true)
		_ = to.Close()
	})
	if !c.isThrough() {
		if _, err = io.CopyN(from, to, c.length()); err == nil {
			c.cuts.Add(1)
		}
	} else if _, err = io.Copy(from, to); err == nil && !asked.Load() {
		c.ends.Add(1)
	}
	if err == nil {
		_ = from.(*net.TCPConn).SetLinger(0) // as a host does that lost the connection
	}
	_ = from.Close()
	asking.Wait()
}

// hostOf returns the host and port of a node.
func hostOf(base string) string {
	_, host, _ := strings.Cut(strings.TrimSuffix(base, "/api"), "//")
	return host
}
