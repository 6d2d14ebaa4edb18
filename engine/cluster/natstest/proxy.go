package natstest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy passes TCP connections on to an address, until it is told otherwise.
type Proxy struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup
	mute     atomic.Bool // what the other side answers is lost

	mu   sync.Mutex
	open map[net.Conn]struct{}
	cut  bool // no connection is passed on
}

// NewProxy returns a proxy to an address that ends with the test.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noErr(t, err)
	p := &Proxy{listener: listener, to: to, open: make(map[net.Conn]struct{})}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
		p.running.Wait()
	})
	return p
}

// Addr returns the address that is passed on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut ends all connections and lets none through until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.open {
		_ = c.Close()
	}
}

// Mute loses what the other side answers from now on, until Heal: what is sent still arrives.
func (p *Proxy) Mute() { p.mute.Store(true) }

// Heal lets everything through again. What was muted is lost: its connections end.
func (p *Proxy) Heal() {
	if p.mute.Load() {
		p.Cut()
	}
	p.mute.Store(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
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
	if !p.cut {
		p.open[c] = struct{}{}
	}
	return !p.cut
}

func (p *Proxy) letGo(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	_ = c.Close()
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
		_, _ = io.Copy(answers{from, &p.mute}, to)
	})
	_, _ = io.Copy(to, from)
	_ = to.Close()
	back.Wait()
}

// answers is a connection that what the other side answers is written to, unless it is lost.
type answers struct {
	io.Writer
	mute *atomic.Bool
}

func (a answers) Write(b []byte) (int, error) {
	if a.mute.Load() {
		return len(b), nil
	}
	return a.Writer.Write(b)
}
