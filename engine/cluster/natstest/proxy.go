package natstest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy passes TCP connections on to an address, until it is told otherwise.
type Proxy struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	cut    bool // no connection is passed on
	mute   bool // what the other side answers is lost
	closed bool
}

// NewProxy returns a proxy to an address that ends with the test.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, to: to, open: make(map[net.Conn]struct{})}
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the address that is passed on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut ends all connections and lets none through until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.dropLocked()
}

// Mute loses what the other side answers from now on, until Heal or Cut: what is sent still arrives.
func (p *Proxy) Mute() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = true
}

// Drop ends all connections; new ones are let through.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked()
}

// Heal lets everything through again. What was muted is lost: its connections end.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mute {
		p.dropLocked()
	}
	p.cut, p.mute = false, false
}

func (p *Proxy) dropLocked() {
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	_ = p.listener.Close()
	p.dropLocked()
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.pass(from) })
	}
}

// hold remembers a connection so that Cut finds it; not ok: it is not wanted.
func (p *Proxy) hold(c net.Conn) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut || p.closed {
		return false
	}
	p.open[c] = struct{}{}
	return true
}

func (p *Proxy) letGo(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close()
}

func (p *Proxy) muted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mute
}

func (p *Proxy) pass(from net.Conn) {
	defer p.letGo(from)
	if !p.hold(from) {
		return
	}
	to, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer p.letGo(to)
	if !p.hold(to) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		defer from.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := to.Read(b)
			if err != nil {
				return
			}
			if p.muted() {
				continue
			}
			if _, err := from.Write(b[:n]); err != nil {
				return
			}
		}
	})
	_, _ = io.Copy(to, from)
	_ = to.Close()
	back.Wait()
}
