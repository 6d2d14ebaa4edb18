package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/websocket"
)

// Subscription says what a stream is told of. Without any names that is everything.
type Subscription struct {
	Pubkeys  []string // these accounts
	Programs []string // accounts that these programs own, before or after a block
	Wallets  []string // these wallets and their token accounts

	Commitment Commitment // blocks of this level; empty: processed
	Tokens     bool       // updates of token accounts tell what they hold
	// After goes on after this number of an update, as a program does that kept it beside its state: no Start is told then, unless the node
	// does not know any more what followed. nil: the stream begins with a Start.
	After *uint64
	// Conflate has a node pass over older states of an account for a reader that is too slow, and say so with a Gap. Without it such a
	// reader is disconnected, and resumes.
	Conflate bool
}

func (s *Subscription) names() int { return len(s.Pubkeys) + len(s.Programs) + len(s.Wallets) }

// Update is the state of an account after a block, or after a rollback. One with 0 lamports is closed.
type Update struct {
	Pubkey     string     `json:"pubkey"`
	Lamports   uint64     `json:"lamports"`
	Timestamp  *time.Time `json:"timestamp"` // the block's
	Slot       uint64     `json:"slot"`
	Seq        uint64     `json:"seq"` // members of a snapshot share that of their Start
	Owner      string     `json:"owner"`
	Executable bool       `json:"executable"`
	Commitment Commitment `json:"commitment"`
	Token      *struct {
		Mint     string `json:"mint"`
		Owner    string `json:"owner"` // the wallet
		Amount   string `json:"amount"`
		Decimals *uint8 `json:"decimals"`
	} `json:"token"` // nil where the subscription wants no tokens too
}

// Start is the point from which on everything is told.
type Start struct {
	Slot, Seq uint64
	// Snapshot says that the state of all accounts follows, up to the handler's Ready. A subscription to everything has none: the state at
	// this point is what REST answers at its slot or a later one.
	Snapshot bool
}

// Rollback says that blocks were undone. Updates of what they had changed follow.
type Rollback struct {
	FromSlot uint64 `json:"from_slot"` // the tip before
	ToSlot   uint64 `json:"to_slot"`   // the block that the ledger went back to
	Seq      uint64 `json:"seq"`
}

// Gap says that of the updates after one number and up to another only the newest state of each account follows.
type Gap struct {
	FromSeq uint64 `json:"from_seq"`
	ToSeq   uint64 `json:"to_seq"`
}

// Handler is told what happens. Fields that are nil are not called. What a handler is given is its own.
type Handler struct {
	Start    func(Start)            // all that was told before is void
	Ready    func()                 // the snapshot is complete
	Update   func(Update)           // an account has changed, or is a member of the snapshot
	Rollback func(Rollback)         // blocks were undone
	SlotEnd  func(slot, seq uint64) // all updates of a block were told
	Gap      func(Gap)              // older states were passed over, with Conflate alone
	// Disconnected is called when a connection has ended or could not be made; the next try comes after the wait.
	Disconnected func(why error, wait time.Duration)
}

const (
	// silence is after how long without a frame a connection counts as lost: the node sends a heartbeat each second.
	silence = 5 * time.Second
	// leastPause and mostPause are between tries to connect. The pause doubles with each try that fails, and varies by half, so that not
	// all clients of a node come back at once.
	leastPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second
	// maxMessageBytes is the longest message that a node takes.
	maxMessageBytes = 64 << 10
	// maxFrameBytes is far above the longest frame of a node.
	maxFrameBytes = 1 << 20
)

// Stream tells a handler everything that a subscription asks for, over as many connections as it takes, until ctx ends, whose error it
// then returns. Any other error is the refusal of the subscription itself, which would be the same the next time: by the node, or before it
// is asked where the names are more than fit into one message, some 1,390 pubkeys.
func (c *Client) Stream(ctx context.Context, sub Subscription, h Handler) error {
	if message, err := sub.message(true); err != nil || len(message) > maxMessageBytes {
		return errors.Join(err, fmt.Errorf("the names of a subscription must fit into a message of %d bytes: use several streams", maxMessageBytes))
	}
	s := &stream{client: c, sub: sub, handler: h}
	if sub.After != nil {
		s.known, s.seq, s.same = true, *sub.After, make(map[uint64]struct{})
	}
	for pause := leastPause; ; {
		told, err := s.connection(ctx)
		var refused *StatusError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && !refused.passes(), websocket.IsCloseError(err, finalCodes...):
			return err
		}
		if told {
			pause = leastPause
		}
		wait := pause/2 + rand.N(pause)
		if refused != nil {
			wait = max(wait, refused.RetryAfter)
		}
		if s.handler.Disconnected != nil {
			s.handler.Disconnected(err, wait)
		}
		pause = min(2*pause, mostPause)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// passes reports whether a refusal may be another one the next time.
func (e *StatusError) passes() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// dial connects, and says what the stream is to be told of. A refusal of the upgrade is a *StatusError.
func (s *stream) dial(ctx context.Context) (*websocket.Conn, error) {
	q := url.Values{"extended": {"true"}}
	if s.sub.names() > 0 {
		q.Set("mode", "none") // the names follow in a message, which has room for more of them than an address
	}
	if s.sub.Commitment != "" {
		q.Set("commitment", string(s.sub.Commitment))
	}
	if s.sub.Tokens {
		q.Set("tokens", "true")
	}
	if s.sub.Conflate {
		q.Set("overflow", "conflate")
	}
	address := "ws" + strings.TrimPrefix(s.client.base, "http") + "/ws/accounts?" + q.Encode()
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	conn, response, err := s.client.dialer().DialContext(ctx, address, s.client.header())
	if response != nil {
		s.client.note(response.Header)
	}
	switch {
	// A server that stops answers 101 with "Connection: close": that is no refusal.
	case errors.Is(err, websocket.ErrBadHandshake) && response.StatusCode != http.StatusSwitchingProtocols:
		return nil, statusError(response)
	case err != nil:
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	conn.SetReadLimit(maxFrameBytes)
	return conn, nil
}

// open says on a new connection what the stream wants: to go on where it was, or to begin.
func (s *stream) open(conn *websocket.Conn) error {
	s.listing = false
	s.awaits = ""
	if s.sub.names() > 0 {
		if err := s.subscribe(conn); err != nil {
			return err
		}
	}
	switch {
	case s.known: // what comes before the answer will come again
		s.awaits = "resumed"
		return conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"resume","id":2,"from_seq":`+strconv.FormatUint(s.seq, 10)+`}`))
	case s.sub.names() == 0:
		s.awaits = "pong"
		return s.ping(conn)
	}
	s.awaits = "subscribed"
	return nil
}

// finalCodes are the close codes of messages that would be refused again.
var finalCodes = []int{websocket.CloseUnsupportedData, websocket.CloseInvalidFramePayloadData, websocket.CloseMessageTooBig}

// message returns what names the accounts, with or without a snapshot of them.
func (s *Subscription) message(snapshot bool) ([]byte, error) {
	return json.Marshal(struct {
		Type     string   `json:"type"`
		ID       int      `json:"id"`
		Pubkeys  []string `json:"pubkeys,omitempty"`
		Programs []string `json:"programs,omitempty"`
		Wallets  []string `json:"wallets,omitempty"`
		Snapshot bool     `json:"snapshot"`
	}{"subscribe", 1, s.Pubkeys, s.Programs, s.Wallets, snapshot})
}

// subscribe names what the stream is told of, and asks for a snapshot unless the stream knows its state.
func (s *stream) subscribe(conn *websocket.Conn) error {
	text, err := s.sub.message(!s.known)
	if err != nil {
		return err
	}
	return conn.WriteMessage(websocket.TextMessage, text)
}

// ping asks where the node stands.
func (s *stream) ping(conn *websocket.Conn) error {
	return conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"ping","id":3}`))
}
