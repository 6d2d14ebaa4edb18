package wire

import (
	"cmp"
	"crypto/tls"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ledgerd/httpd/ratelimit"
)

// reservedFiles are file descriptors that connections never take: log, snapshots, sources
// and the other listener need theirs when clients take all they can.
const reservedFiles = 512

// Counts are the numbers of connections. They only grow.
type Counts struct {
	RefusedTotal  atomic.Uint64 // closed because the server is full
	RefusedClient atomic.Uint64 // closed because the client has too many, or makes them too fast
	Floods        atomic.Uint64 // times that a client's SYNs were dropped for the rest of a second
	Evicted       atomic.Uint64 // without a whole request, closed in favour of new ones, because the server is full
	Wasteful      atomic.Uint64 // ended because of records of TLS without data
	Shortages     atomic.Uint64 // Accept failed for want of a resource
	Errors        atomic.Uint64 // that fasthttp gave up
}

// caps bound the connections of a server, or of several that share them.
//
//	what is capped                  | at                  | one more
//	all connections                 | Config.MaxConns     | makes room: of a sample, the connection ends whose time for a request is over first
//	those, with exempt clients      | the file descriptors| the same
//	of a client                     | MaxConnsPerClient   | is closed, or its request is refused, if it is of an API key
//	that a client makes a minute    | SetCaps             | is closed
//
// A connection that is closed gets no answer: nothing is read or written for it, and no goroutine started. It counts for its address until a request
// names an API key, and for the key from then on: a key may have the WebSockets of its tier and MaxConnsPerClient connections besides. A trusted proxy is many
// clients, and peers without an address cannot be told apart: their connections count in all alone. So do those of exempt clients.
type caps struct {
	counts                          *Counts
	most, mostExempt, mostPerClient int
	pace                            *ratelimit.Limiter // of new connections
	began                           time.Time

	mu      sync.Mutex
	conns   map[*Conn]struct{}
	clients map[netip.Addr]int // how many connections count for each
}

func newCaps(config *Config, counts *Counts) *caps {
	now := time.Now()
	cs := &caps{
		counts: counts, pace: ratelimit.New(0, 0, now), began: now,
		conns: make(map[*Conn]struct{}), clients: make(map[netip.Addr]int),
	}
	cs.set(config.MaxConns, config.MaxConnsPerClient, 0)
	return cs
}

// set is Server.SetCaps.
func (cs *caps) set(most, perClient, perMinute int) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	files := ConnsWithinFileLimit()
	cs.most, cs.mostPerClient = cmp.Or(most, files), perClient
	cs.mostExempt = max(cs.most, files)
	cs.pace.SetLimits(perMinute, 0)
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

// isCappedLocked reports whether the connection counts against a client's cap.
func (c *Conn) isCappedLocked() bool {
	return !c.client.Exempt && !c.Peer.Trusted && c.client.Key.IsValid()
}

// admit counts a new connection, which is to be encrypted where there is a configuration for that, unless a cap is reached. ofClient: it is one of the client's.
func (cs *caps) admit(c *Conn, encryption *tls.Config) (admitted, ofClient bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.isCappedLocked() && (!cs.pace.Take(c.client.Key, 1, time.Now()).Allowed || !cs.hasRoomLocked(&c.client)) {
		cs.counts.RefusedClient.Add(1)
		return false, true
	}
	most := cs.most
	if c.client.Exempt {
		most = cs.mostExempt
	}
	if len(cs.conns) >= most && !cs.evictLocked() {
		cs.counts.RefusedTotal.Add(1)
		return false, false
	}
	if encryption != nil {
		c.encrypt(encryption)
	}
	cs.conns[c] = struct{}{}
	cs.countLocked(c, 1)
	return true, false
}

// hasRoomLocked reports whether a client may have another connection.
func (cs *caps) hasRoomLocked(client *ratelimit.Client) bool {
	return cs.clients[client.Key] < cs.mostPerClient+client.Sockets
}

// countLocked counts a connection for its client, or with -1 stops to.
func (cs *caps) countLocked(c *Conn, n int) {
	if !c.isCappedLocked() {
		return
	}
	if cs.clients[c.client.Key] += n; cs.clients[c.client.Key] == 0 {
		delete(cs.clients, c.client.Key)
	}
}

// CountFor has the connection count for the client whose API key it has sent, and no more for the one that it did count for. It returns false, and changes
// nothing, if that client has as many as it may.
func (c *Conn) CountFor(client ratelimit.Client) bool {
	cs := c.caps
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, open := cs.conns[c]; !open || c.Peer.Trusted || c.client.Key == client.Key && c.client.Exempt == client.Exempt {
		return true
	}
	if !client.Exempt && !cs.hasRoomLocked(&client) {
		cs.counts.RefusedClient.Add(1)
		return false
	}
	cs.countLocked(c, -1)
	c.client = client
	cs.countLocked(c, 1)
	return true
}

// evictionSample is among how many connections the one is chosen that makes room: the oldest of all would have to be kept in order
// with each request.
const evictionSample = 64

// evictLocked closes one of the connections that wait for a request, or for the rest of one: of a sample the one whose time is over first. One that
// has never sent a whole request has less time than one that is used. It reports whether there was one in the sample.
func (cs *caps) evictLocked() bool {
	var victim *Conn
	var soonest int64
	seen := 0
	for c := range cs.conns { // in no order
		if until := c.readUntil.Load(); until != 0 && c.isCappedLocked() && (victim == nil || until < soonest) {
			victim, soonest = c, until
		}
		if seen++; seen == evictionSample {
			break
		}
	}
	if victim == nil {
		return false
	}
	cs.counts.Evicted.Add(1)
	cs.dropLocked(victim)
	_ = victim.NetConn().Close() // whoever reads it ends it
	return true
}

// forget stops counting a connection that has ended.
func (cs *caps) forget(c *Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.dropLocked(c)
}

// dropLocked stops counting a connection, once.
func (cs *caps) dropLocked(c *Conn) {
	if _, counts := cs.conns[c]; !counts {
		return
	}
	delete(cs.conns, c)
	cs.countLocked(c, -1)
}

// open returns the connections that are open.
func (cs *caps) open() []*Conn {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.Collect(maps.Keys(cs.conns))
}

// count returns how many connections are open.
func (cs *caps) count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.conns)
}
