package client

import (
	"encoding/json"
	"sync"

	"github.com/fasthttp/websocket"
)

// The kinds of names.
const (
	pubkey = iota
	program
	wallet
	kinds
)

// name is what a stream is told of: an account, or the accounts of a program or a wallet.
type name struct {
	kind int
	text string
}

func namesOf(pubkeys, programs, wallets []string) (all []name) {
	for kind, texts := range [kinds][]string{pubkeys, programs, wallets} {
		for _, text := range texts {
			all = append(all, name{kind, text})
		}
	}
	return all
}

// More are names that a stream is told of as soon as they are added. The zero value has none. It belongs to one stream.
type More struct {
	mu    sync.Mutex
	added []name
}

// Add has the stream be told of more accounts, accounts of programs, and wallets. Within about a second the handler is told their state, as updates that
// carry the number of the point as of which it is, and Ready then. It may be called from any goroutine.
func (m *More) Add(pubkeys, programs, wallets []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.added = append(m.added, namesOf(pubkeys, programs, wallets)...)
}

// taken returns what was added since it was called last.
func (m *More) taken() (added []name) {
	m.mu.Lock()
	defer m.mu.Unlock()
	added, m.added = m.added, nil
	return added
}

// subscribe names as many more of what the stream is told of as one message says, and asks for a snapshot of it unless the stream knows its state. More
// is only named when the message before was answered in full: so a node has one message of a stream in hand, and frames come in the order of the ledger.
func (s *stream) subscribe(conn *websocket.Conn) error {
	known := s.answered < s.ready
	s.said = min(s.answered+partNames, len(s.names))
	if known {
		s.said = min(s.said, s.ready)
	}
	var lists [kinds][]string
	for _, n := range s.names[s.answered:s.said] {
		lists[n.kind] = append(lists[n.kind], n.text)
	}
	where := s.sub.Where
	if lists[program] == nil {
		where = nil
	}
	text, err := json.Marshal(struct {
		Type     string   `json:"type"`
		ID       int      `json:"id"`
		Pubkeys  []string `json:"pubkeys,omitempty"`
		Programs []string `json:"programs,omitempty"`
		Wallets  []string `json:"wallets,omitempty"`
		*DataFilter
		Snapshot bool `json:"snapshot"`
	}{"subscribe", 1, lists[pubkey], lists[program], lists[wallet], where, !known})
	if err != nil {
		return err
	}
	return say(conn, text)
}
