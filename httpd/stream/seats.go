package stream

import (
	"net/netip"
	"sync"
	"time"
)

// seats count connections against the caps. A seat is taken before the upgrade, so that a
// refusal is still an HTTP answer, and held until the connection ends. Should the
// handshake's answer never be written, nobody comes to sit down: such a seat is given back when
// the connection ends, or expires where that is not told.
type seats struct {
	total, perClient int

	mu      sync.Mutex
	taken   int
	clients map[netip.Addr]int
	pending map[*seat]time.Time // until when somebody has to sit down
}

// seatTimeout is longer than writing a handshake's answer can take.
const seatTimeout = 30 * time.Second

// seat is one place. That of an exempt client is not counted.
type seat struct {
	client  netip.Addr
	counted bool
}

func newSeats(total, perClient int) *seats {
	return &seats{
		total: total, perClient: perClient,
		clients: make(map[netip.Addr]int), pending: make(map[*seat]time.Time),
	}
}

// take reserves a seat. Exempt clients are above both caps.
func (s *seats) take(client netip.Addr, exempt bool, now time.Time) (*seat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, until := range s.pending {
		if now.After(until) {
			s.freeLocked(p)
		}
	}
	place := &seat{client, !exempt}
	if place.counted {
		switch {
		case s.taken >= s.total:
			return nil, errFull
		case s.clients[client] >= s.perClient:
			return nil, errClientFull
		}
		s.taken++
		s.clients[client]++
	}
	s.pending[place] = now.Add(seatTimeout)
	return place, nil
}

// sit claims a reserved seat; false if it expired.
func (s *seats) sit(place *seat) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.pending[place]
	delete(s.pending, place)
	return ok
}

// abandon gives a reserved seat back that nobody comes to sit on.
func (s *seats) abandon(place *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pending[place]; ok {
		s.freeLocked(place)
	}
}

// free gives a seat back.
func (s *seats) free(place *seat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.freeLocked(place)
}

func (s *seats) freeLocked(place *seat) {
	delete(s.pending, place)
	if !place.counted {
		return
	}
	s.taken--
	if s.clients[place.client]--; s.clients[place.client] == 0 {
		delete(s.clients, place.client)
	}
}
