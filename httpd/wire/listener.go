package wire

import (
	"crypto/tls"
	"errors"
	"maps"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ledgerd/httpd/ratelimit"
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

// Counts are the numbers of a listener. They only grow.
type Counts struct {
	RefusedTotal  atomic.Uint64 // connections closed because the server is full
	RefusedClient atomic.Uint64 // connections closed because the client has too many, or makes them too fast
	Floods        atomic.Uint64 // times that a client's SYNs were dropped for the rest of a second
	Evicted       atomic.Uint64 // connections without a whole request closed in favour of new ones, because the server is full
	Shortages     atomic.Uint64 // Accept failed for want of a resource
	Errors        atomic.Uint64 // connections that fasthttp gave up
}

// listener accepts connections as Conns. It outlives a shortage of file descriptors or
// memory, and caps the connections in total, per client and per site, and how many a client makes a minute; those above a cap are
// closed without an answer, before anything is read or a goroutine started for them, and a client with many of those is not let in for
// a moment. Where the server is full, one that waits for
// a request, or for the rest of one, makes room for a new one. Exempt clients are above all caps but that of the file descriptors. A Conn
// counts until it is closed, as a WebSocket too.
type listener struct {
	net.Listener
	config *Config
	counts *Counts

	began     time.Time
	mostConns int // of exempt clients too
	closeOnce sync.Once
	done      chan struct{} // closed by Close

	pace   *ratelimit.Limiter // of new connections
	floods *floodFilter

	mu        sync.Mutex
	conns     map[*Conn]struct{}
	perClient map[netip.Prefix]int // connections that count against the cap of a client, or of its site
}

func newListener(ln net.Listener, config *Config, counts *Counts) *listener {
	now := time.Now()
	return &listener{
		Listener: ln, config: config, counts: counts,
		began: now, mostConns: max(config.MaxConns, ConnsWithinFileLimit()), done: make(chan struct{}),
		pace:      ratelimit.New(config.ConnsPerMinute, 0, now),
		floods:    newFloodFilter(ln, config.Identity),
		conns:     make(map[*Conn]struct{}),
		perClient: make(map[netip.Prefix]int),
	}
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
		case !isShortage(err):
			return nil, err
		}
		l.counts.Shortages.Add(1)
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

// isShortage reports whether Accept may succeed later.
func isShortage(err error) bool {
	passing := []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(passing, errno)
}

// admit registers the connection, or returns nil if a cap is reached.
func (l *listener) admit(nc net.Conn) *Conn {
	c := &Conn{Conn: nc, Peer: l.config.Identity.PeerOf(nc.RemoteAddr()), listener: l}
	if c.isCapped() && !l.pace.Take(c.Peer.Key, time.Now()).Allowed {
		l.refuse(c.Peer.Key)
		return nil
	}
	l.mu.Lock()
	if c.isCapped() && !l.hasRoomFor(c.Peer.Key) {
		l.mu.Unlock()
		l.refuse(c.Peer.Key) // which may take a while, and nobody waits for it
		return nil
	}
	defer l.mu.Unlock()
	most := l.config.MaxConns
	if c.Peer.Exempt {
		most = l.mostConns
	}
	if len(l.conns) >= most && !l.evict() {
		l.counts.RefusedTotal.Add(1)
		return nil
	}
	if c.isCapped() {
		for _, network := range networks(c.Peer.Key) {
			l.perClient[network]++
		}
	}
	l.conns[c] = struct{}{}
	if l.config.TLS != nil {
		c.Conn = tls.Server(nc, l.config.TLS) // the first read shakes hands, within the time that a request has
	}
	return c
}

// refuse counts a connection that is too many for its client.
func (l *listener) refuse(client netip.Addr) {
	l.counts.RefusedClient.Add(1)
	if l.floods.count(client) {
		l.counts.Floods.Add(1)
	}
}

// networks returns what a client's connections count for: itself, and with IPv6 its site.
func networks(client netip.Addr) []netip.Prefix {
	own := netip.PrefixFrom(client, client.BitLen())
	if client.Is4() {
		return []netip.Prefix{own}
	}
	return []netip.Prefix{own, netip.PrefixFrom(client, ratelimit.SiteBits).Masked()}
}

// hasRoomFor reports whether a client, and its site, may have another connection.
func (l *listener) hasRoomFor(client netip.Addr) bool {
	most := l.config.MaxConnsPerClient
	for _, network := range networks(client) {
		if l.perClient[network] >= most {
			return false
		}
		most *= ratelimit.ClientsPerSite
	}
	return true
}

// evictionSample is among how many connections the one is chosen that makes room: the oldest of all would have to be kept in order
// with each request.
const evictionSample = 64

// evict closes one of the connections that wait for a request, or for the rest of one: of a sample the one whose time is over first. One that
// has never sent a whole request has less time than one that is used. It reports whether there was one in the sample.
func (l *listener) evict() bool {
	var victim *Conn
	var soonest int64
	seen := 0
	for c := range l.conns { // in no order
		if until := c.readUntil.Load(); until != 0 && c.isCapped() && (victim == nil || until < soonest) {
			victim, soonest = c, until
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	if victim == nil {
		return false
	}
	l.counts.Evicted.Add(1)
	delete(l.conns, victim)
	_ = victim.NetConn().Close() // whoever reads it ends it
	return true
}

// isCapped reports whether the connection counts against its client's cap. A trusted proxy
// is many clients; peers without an address cannot be told apart.
func (c *Conn) isCapped() bool {
	return !c.Peer.Exempt && !c.Peer.Trusted && c.Peer.Key.IsValid()
}

// forget stops counting a connection: against its client's cap later, if that is past its limit.
func (l *listener) forget(c *Conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	switch {
	case !c.isCapped():
	case c.penalized.Load():
		time.AfterFunc(refusalPenalty, func() { l.uncount(c.Peer.Key) })
	default:
		l.uncount(c.Peer.Key)
	}
}

// uncount makes room for another connection of a client.
func (l *listener) uncount(client netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, network := range networks(client) {
		if l.perClient[network]--; l.perClient[network] == 0 {
			delete(l.perClient, network)
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

// closeConns closes every connection that was not taken over, side by side: each may drain for
// a moment.
func (l *listener) closeConns() {
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range open {
		if !c.takenOver.Load() {
			// The connection may end by itself at the same time; both are fine.
			closing.Go(func() { _ = c.Close() })
		}
	}
	closing.Wait()
}

// ConnsWithinFileLimit returns how many connections the process' file descriptors allow.
func ConnsWithinFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 4 * reservedFiles
	}
	files := int(min(limit.Cur, math.MaxInt32))
	return max(files-reservedFiles, files/2, 1)
}
