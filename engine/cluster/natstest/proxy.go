package natstest

import (
	"context"
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
	open context.Context // that of the connections: none is passed on when it has ended
	end  context.CancelFunc
}

// NewProxy returns a proxy to an address that ends with the test.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &Proxy{listener: listener, to: to}
	p.open, p.end = context.WithCancel(context.Background())
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
	p.end()
}

// Mute loses what the other side answers from now on, until Heal: what is sent still arrives.
func (p *Proxy) Mute() { p.mute.Store(true) }

// Heal lets everything through again. What was muted is lost: its connections end.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mute.Load() {
		p.end()
	}
	p.mute.Store(false)
	if p.open.Err() != nil {
		p.open, p.end = context.WithCancel(context.Background())
	}
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

func (p *Proxy) pass(from net.Conn) {
	defer from.Close()
	p.mu.Lock()
	open := p.open
	p.mu.Unlock()
	to, err := new(net.Dialer).DialContext(open, "tcp", p.to)
	if err != nil {
		return
	}
	hangUp := func() {
		_ = from.Close()
		_ = to.Close()
	}
	defer context.AfterFunc(open, hangUp)()
	var back sync.WaitGroup
	back.Go(func() {
		defer from.Close()
		_, _ = io.Copy(passing{from, func() bool { return open.Err() == nil && !p.mute.Load() }}, to)
	})
	_, _ = io.Copy(passing{to, func() bool { return open.Err() == nil }}, from)
	_ = to.Close()
	back.Wait()
}

// passing is a connection to which nothing is written from the moment on that nothing passes.
type passing struct {
	io.Writer
	passes func() bool
}

func (p passing) Write(b []byte) (int, error) {
	if !p.passes() {
		return len(b), nil
	}
	return p.Writer.Write(b)
}
