package httpd

import (
	"errors"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// The wait before accepting again after the system ran out of something. It doubles from
// the first to the last, so that an exhausted node neither spins nor stays deaf for long.
const (
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
)

// reservedFiles are file descriptors that connections never take: log, snapshots, sources
// and the other listener need theirs when clients take all they can.
const reservedFiles = 512

// listenerConfig is what the accepting side needs to know. All fields are required.
type listenerConfig struct {
	identity   *identity
	timeouts   timeouts
	maxConns   int // in total
	maxPerPeer int // of one client
	log        *slog.Logger
	meters     *meters

	direct  func(c *conn, head []byte) directOutcome // nil: fasthttp answers everything
	stopped *atomic.Bool                             // of the acceptor, which sets it
}

// listener accepts connections as conns. It outlives a shortage of file descriptors or
// memory, and caps the connections in total and per client; those above a cap are closed
// without an answer, before anything is read or a goroutine started for them. Exempt
// clients are above both caps. A conn counts until it is closed, as a WebSocket too. It
// accepts no faster than newcomers are answered.
type listener struct {
	net.Listener
	listenerConfig

	newcomers *newcomers
	closeOnce sync.Once
	done      chan struct{} // closed by Close

	mu      sync.Mutex
	conns   map[*conn]struct{}
	perPeer map[netip.Addr]int // connections that count against a client's cap
}

// newListener wraps ln.
func newListener(ln net.Listener, config listenerConfig) *listener {
	return &listener{
		Listener:       ln,
		listenerConfig: config,
		newcomers:      newNewcomers(),
		done:           make(chan struct{}),
		conns:          make(map[*conn]struct{}),
		perPeer:        make(map[netip.Addr]int),
	}
}

// Accept returns the next connection within the caps. Its errors are final.
func (l *listener) Accept() (net.Conn, error) {
	pause := firstAcceptPause
	for {
		l.newcomers.await(l.done)
		nc, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = firstAcceptPause
			if c := l.admit(nc); c != nil {
				return c, nil
			}
			// Nobody waits for this error: the connection was never ours.
			_ = nc.Close()
			continue
		case !isShortage(err):
			return nil, err
		}
		l.meters.shortages.Add(1)
		if pause == firstAcceptPause {
			l.log.Warn("cannot accept connections, trying again", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-l.done:
			return nil, net.ErrClosed
		}
		pause = min(2*pause, lastAcceptPause)
	}
}

// isShortage reports whether Accept may succeed later.
func isShortage(err error) bool {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// admit registers the connection, or returns nil if a cap is reached.
func (l *listener) admit(nc net.Conn) *conn {
	c := &conn{
		Conn:     nc,
		peer:     l.identity.peerOf(nc.RemoteAddr()),
		timeouts: l.timeouts,
		release:  l.forget,
		settled:  l.newcomers.leave,
		direct:   l.direct,
		stopped:  l.stopped,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= l.maxConns && !c.peer.exempt {
		l.meters.refusedAll.Add(1)
		return nil
	}
	if l.capped(c) {
		if l.perPeer[c.peer.key] >= l.maxPerPeer {
			l.meters.refusedPeer.Add(1)
			return nil
		}
		l.perPeer[c.peer.key]++
	}
	l.conns[c] = struct{}{}
	c.cohort = l.newcomers.enter()
	return c
}

// capped reports whether the connection counts against its client's cap. A trusted proxy
// is many clients; peers without an address cannot be told apart.
func (l *listener) capped(c *conn) bool {
	return !c.peer.exempt && !c.peer.trusted && c.peer.key.IsValid()
}

func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if l.capped(c) {
		if l.perPeer[c.peer.key]--; l.perPeer[c.peer.key] == 0 {
			delete(l.perPeer, c.peer.key)
		}
	}
}

// count returns how many connections are open.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// Close stops accepting. Connections stay open. It may be called again.
func (l *listener) Close() (err error) {
	l.closeOnce.Do(func() {
		close(l.done)
		err = l.Listener.Close()
	})
	return err
}

// closeConns closes every connection that was not taken over.
func (l *listener) closeConns() {
	l.mu.Lock()
	var open []*conn
	for c := range l.conns {
		if !c.takenOver.Load() {
			open = append(open, c)
		}
	}
	l.mu.Unlock()
	for _, c := range open {
		// The connection may end by itself at the same time; both are fine.
		_ = c.closeNow()
	}
}

// connsWithinFileLimit returns how many connections the process' file descriptors allow.
func connsWithinFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 4 * reservedFiles
	}
	files := int(min(limit.Cur, math.MaxInt32))
	return max(files-reservedFiles, files/2, 1)
}
