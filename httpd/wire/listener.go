package wire

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The wait before accepting again after the system ran out of something. It doubles from
// the first to the last, so that an exhausted node neither spins nor stays deaf for long.
const (
	firstAcceptPause = 5 * time.Millisecond
	lastAcceptPause  = time.Second
)

// listener accepts connections as Conns, and outlives a shortage of file descriptors or
// memory. Connections above a cap are closed without an answer, and a client with many of those is not let in for
// a moment.
type listener struct {
	net.Listener
	config    *Config
	caps      *caps
	handler   Handler // of its connections
	floods    *floodFilter
	closeOnce sync.Once
	done      chan struct{} // closed by Close
}

func newListener(ln net.Listener, config *Config, caps *caps) *listener {
	return &listener{Listener: ln, config: config, caps: caps, handler: config.Handler, floods: newFloodFilter(ln, config.Identity), done: make(chan struct{})}
}

// Accept returns the next connection within the caps. Its errors are final.
func (l *listener) Accept() (net.Conn, error) {
	pause := firstAcceptPause
	for {
		nc, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = firstAcceptPause
			if c := l.admit(nc); c != nil {
				return c, nil
			}
			_ = nc.Close() // what becomes of a connection that never was ours is of no interest
			continue
		case !slices.ContainsFunc(shortages, func(shortage syscall.Errno) bool { return errors.Is(err, shortage) }):
			return nil, err
		}
		l.caps.counts.Shortages.Add(1)
		if pause == firstAcceptPause {
			l.config.Log.Warn("cannot accept connections, trying again", "err", err)
		}
		select {
		case <-time.After(pause):
		case <-l.done:
			return nil, net.ErrClosed
		}
		pause = min(2*pause, lastAcceptPause)
	}
}

// shortages pass: Accept may succeed later.
var shortages = []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}

// admit returns the connection of a socket, or nil if a cap is reached.
func (l *listener) admit(socket net.Conn) *Conn {
	c := newConn(socket, l.config.Identity.PeerOf(socket.RemoteAddr()), l.caps)
	c.handler = l.handler
	admitted, ofClient := l.caps.admit(c, l.config.TLS)
	if admitted {
		return c
	}
	if ofClient && l.floods.count(c.Peer.Key) {
		l.caps.counts.Floods.Add(1)
	}
	return nil
}

// Close stops accepting. Connections stay open. It may be called again.
func (l *listener) Close() (err error) {
	l.closeOnce.Do(func() {
		close(l.done)
		err = l.Listener.Close()
	})
	return err
}
