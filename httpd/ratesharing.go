package httpd

import (
	"net/netip"
	"sync"
	"time"
)

// sharing lets the limiters of several nodes count for each other: each tells the others now and
// then how many requests of which client it granted, and counts theirs as its own. A request is
// decided by what is known here: nobody waits for another node, and a client may get on each
// node what is left of its limits until the others hear of it.
//
// The request path knows nothing of it: what is to be told is the difference between two looks at
// the hours' counters. Clients without a place in the table are not told of.
type sharing struct {
	limiter *limiter

	mu   sync.Mutex
	seen map[[16]byte]seenHour
	look uint64 // how many there were
}

// seenHour is how far an hour's counter was told of, or counted for others.
type seenHour struct {
	start instant
	used  int
	look  uint64 // that found the client in the table last
}

func newSharing(l *limiter) *sharing {
	return &sharing{limiter: l, seen: make(map[[16]byte]seenHour)}
}

// Granted visits every client that was granted requests since the last call, with how many. It
// and GrantedElsewhere, of the other nodes, let several nodes hold a client to one limit.
func (s *Server) Granted(visit func(client netip.Addr, requests uint32)) {
	s.sharing.granted(s.now(), visit)
}

// GrantedElsewhere counts requests that another node granted a client.
func (s *Server) GrantedElsewhere(client netip.Addr, requests uint32) {
	if !s.limiter.off() {
		s.sharing.grantedElsewhere(client, requests, s.now())
	}
}

// granted visits every client that was granted requests since the last call, with how many.
func (s *sharing) granted(now time.Time, visit func(client netip.Addr, requests uint32)) {
	at := s.limiter.at(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look++
	s.limiter.table.each(func(p *place) {
		hour := p.counter[hourWindow].look(hourWindow, at)
		if hour.used == 0 {
			return
		}
		before := s.seen[p.key]
		if before.start != hour.start {
			before.used = 0
		}
		s.seen[p.key] = seenHour{hour.start, hour.used, s.look}
		if n := hour.used - before.used; n > 0 {
			visit(netip.AddrFrom16(p.key).Unmap(), uint32(n))
		}
	})
	for key, seen := range s.seen {
		if seen.look != s.look {
			delete(s.seen, key)
		}
	}
}

// grantedElsewhere counts requests that another node granted a client, past its limits too: the
// next one is refused then.
func (s *sharing) grantedElsewhere(client netip.Addr, requests uint32, now time.Time) {
	if requests == 0 {
		return
	}
	at, n := s.limiter.at(now), int(min(requests, maxCount))
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		c := s.limiter.table.find(client, at, &s.limiter.limits)
		if _, ok := c[minuteWindow].add(minuteWindow, at, n); !ok {
			continue // its place was given away meanwhile
		}
		hour, _ := c[hourWindow].add(hourWindow, at, n)
		key := client.As16()
		seen := s.seen[key]
		if seen.start != hour.start {
			seen = seenHour{start: hour.start}
		}
		seen.used, seen.look = seen.used+n, s.look
		s.seen[key] = seen
		return
	}
}
