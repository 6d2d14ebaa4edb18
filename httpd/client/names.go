package client

import (
	"encoding/json"
	"sync"

	"github.com/fasthttp/websocket"
)

func (s *Subscription) names() int { return s.part().names() }

func (s *Subscription) part() part { return part{s.Pubkeys, s.Programs, s.Wallets} }

// More are names that a stream is told of as soon as they are added. The zero value has none. It belongs to one stream.
type More struct {
	mu    sync.Mutex
	added part
}

// Add has the stream be told of more accounts, accounts of programs, and wallets. Within about a second the handler is told their state, as updates that
// carry the number of the point as of which it is, and Ready then. It may be called from any goroutine.
func (m *More) Add(pubkeys, programs, wallets []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.added.add(part{pubkeys, programs, wallets})
}

// taken returns what was added since it was called last.
func (m *More) taken() (added part) {
	m.mu.Lock()
	defer m.mu.Unlock()
	added, m.added = m.added, part{}
	return added
}

// part is as many names as one message says.
type part struct {
	Pubkeys  []string `json:"pubkeys,omitempty"`
	Programs []string `json:"programs,omitempty"`
	Wallets  []string `json:"wallets,omitempty"`
}

// add adds the names of another part.
func (p *part) add(q part) {
	p.Pubkeys, p.Programs, p.Wallets = append(p.Pubkeys, q.Pubkeys...), append(p.Programs, q.Programs...), append(p.Wallets, q.Wallets...)
}

// merge makes as few parts of the first n as there may be, and returns how many: names may have been added one by one.
func (s *stream) merge(n int) int {
	var all part
	for _, p := range s.parts[:n] {
		all.add(p)
	}
	merged := all.parts()
	s.parts = append(merged, s.parts[n:]...)
	return len(merged)
}

func (p part) names() int { return len(p.Pubkeys) + len(p.Programs) + len(p.Wallets) }

// parts splits the names.
func (p part) parts() (parts []part) {
	left := p
	for named := p.names(); named > 0; named -= partNames {
		room := partNames
		some := func(of *[]string) (taken []string) {
			n := min(room, len(*of))
			room -= n
			taken, *of = (*of)[:n], (*of)[n:]
			return taken
		}
		parts = append(parts, part{some(&left.Pubkeys), some(&left.Programs), some(&left.Wallets)})
	}
	return parts
}

// subscribe names the next part of what the stream is told of, and asks for a snapshot of it unless the stream knows its state. A part is only
// named when the one before was answered in full: so a node has one message of a stream in hand, and frames come in the order of the ledger.
func (s *stream) subscribe(conn *websocket.Conn) error {
	s.asked = true
	next := s.parts[s.answered]
	where := s.sub.Where
	if len(next.Programs) == 0 {
		where = nil
	}
	text, err := json.Marshal(struct {
		Type string `json:"type"`
		ID   int    `json:"id"`
		part
		*DataFilter
		Snapshot bool `json:"snapshot"`
	}{"subscribe", 1, next, where, s.answered >= s.ready})
	if err != nil {
		return err
	}
	return say(conn, text)
}
