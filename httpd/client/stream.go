package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/wait"
)

// Subscription says what a stream is told of. Without any names that is everything. It has at most 10,000 names, as many as a node takes.
type Subscription struct {
	Pubkeys  []string // these accounts
	Programs []string // accounts that these programs own, before or after a block
	Wallets  []string // these wallets and their token accounts

	Commitment Commitment // blocks of this level; empty: processed
	Tokens     bool       // updates of token accounts tell what they hold
	Data       bool       // updates tell the data of the account
	// Where selects the accounts of Programs: an update is told where the state before or after it is taken. nil: all.
	Where *DataFilter
	// After goes on after this number of an update, as a program does that kept it beside its state, which was Ready: no Start is told then,
	// unless the node does not know any more what followed. nil: the stream begins with a Start.
	After *uint64
	// Conflate has a node pass over older states of an account for a reader that is too slow, and say so with a Gap. Without it such a
	// reader is disconnected, and resumes.
	Conflate bool
	// More are names that are added while the stream runs; nil: none. The subscription must have some itself.
	More *More
}

// Update is the state of an account after a block, or after a rollback. One with 0 lamports is closed.
type Update struct {
	Pubkey     string     `json:"pubkey"`
	Lamports   uint64     `json:"lamports"`
	Timestamp  *time.Time `json:"timestamp"` // the block's
	Slot       uint64     `json:"slot"`
	Seq        uint64     `json:"seq"` // members of a snapshot's part share that of the point as of which it is
	Owner      string     `json:"owner"`
	Executable bool       `json:"executable"`
	Commitment Commitment `json:"commitment"`
	Token      *struct {
		Mint     string `json:"mint"`
		Owner    string `json:"owner"` // the wallet
		Amount   string `json:"amount"`
		Decimals *uint8 `json:"decimals"`
	} `json:"token,omitempty"` // nil where the subscription wants no tokens too
	Space *uint64 `json:"space,omitempty"` // how much data there is; nil where it is not known, or not wanted
	Data  []byte  `json:"data,omitempty"`  // nil likewise
}

// Start is the point from which on everything is told.
type Start struct {
	Slot uint64 `json:"slot"`
	Seq  uint64 `json:"seq"`
	// Snapshot says that the state of all accounts follows, up to the handler's Ready. That of more than 1,250 names comes in parts, the
	// first as of this point and each as of the one at which it is asked for: what happens meanwhile is told between the parts. A subscription
	// to everything has none: the state at this point is what REST answers at its slot or a later one.
	Snapshot bool `json:"snapshot"`
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
	Ready    func()                 // the snapshot, or that of added names, is complete: the state is that of the newest number that was told
	Update   func(Update)           // an account has changed, or is a member of the snapshot
	Rollback func(Rollback)         // blocks were undone
	SlotEnd  func(slot, seq uint64) // all updates of a block were told
	Gap      func(Gap)              // older states were passed over, with Conflate alone
	// Heartbeat comes each second: the node is at that slot, and the number of its newest update is seq.
	Heartbeat func(slot, seq uint64)
	// Disconnected is called when a connection has ended or could not be made; the next try comes after the wait.
	Disconnected func(why error, wait time.Duration)
}

const (
	// silence is after how long without a frame a connection counts as lost: the node sends a heartbeat each second.
	silence = 5 * time.Second
	// leastPause and mostPause are the least and the longest pause between tries to connect. So soon a question is asked again at most.
	leastPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second
	// debtPause is the least wait after a node refused to begin a subscription, as more work than it does for a client at once. After so long
	// without asking a client may have the most done again.
	debtPause = 20 * time.Second
	// maxNames is how many names a node takes on one connection, and partNames how many of them one message says. A node takes messages of up
	// to 64 KiB, which some 1,390 fill.
	maxNames  = 10_000
	partNames = 1250
	// maxFrameBytes is above the longest frame of a node: an account has up to 10 MiB of data, which come in base64.
	maxFrameBytes = 16 << 20
)

// Stream tells a handler everything that a subscription asks for, over as many connections as it takes, until ctx ends, whose error it
// then returns. Any other error is the refusal of the subscription itself, which would be the same the next time: by the node, or before it
// is asked where there are more than 10,000 names.
func (c *Client) Stream(ctx context.Context, sub Subscription, h Handler) error {
	s := &stream{client: c, sub: sub, names: namesOf(sub.Pubkeys, sub.Programs, sub.Wallets), handler: h}
	if n := len(s.names); n > maxNames {
		return fmt.Errorf("a subscription has at most %d names, this one %d: use several streams", maxNames, n)
	}
	if sub.Where != nil && len(sub.Programs) == 0 {
		return errors.New("a filter by data is for accounts of programs: name some")
	}
	if sub.More != nil && len(s.names) == 0 {
		return errors.New("names can be added to a subscription that has some, and not to one to everything")
	}
	if sub.After != nil {
		s.known, s.seq, s.ready = true, *sub.After, len(s.names)
	}
	for pause := (wait.Backoff{Min: leastPause, Max: mostPause}); ; {
		told, err := s.connection(ctx)
		var refused *StatusError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && !refused.passes(), closedWith(err, finalCodes...):
			return err
		}
		if told {
			pause.Reset()
		}
		next := pause.Next()
		switch {
		case refused != nil:
			next = max(next, refused.RetryAfter)
		case (!s.known || s.ready < len(s.names)) && closedWith(err, websocket.ClosePolicyViolation):
			next = max(next, debtPause)
		}
		if s.handler.Disconnected != nil {
			s.handler.Disconnected(err, next)
		}
		if err := wait.Sleep(ctx, next); err != nil {
			return err
		}
	}
}

// passes reports whether a refusal may be another one the next time.
func (e *StatusError) passes() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}

// messageRoom has room for a whole message, shared by all streams. A message longer than such room is sent in many frames, each of which counts
// against the frames that a node takes in a time.
var messageRoom sync.Pool

// dial connects, and says what the stream is to be told of. A refusal of the upgrade is a *StatusError.
func (s *stream) dial(ctx context.Context) (*websocket.Conn, error) {
	q := url.Values{"extended": {"true"}}
	if len(s.names) > 0 {
		q.Set("mode", "none") // the names follow in a message, which has room for more of them than an address
	}
	set(q, map[string]string{"commitment": string(s.sub.Commitment)})
	for name, wanted := range map[string]bool{"tokens": s.sub.Tokens, "data": s.sub.Data} {
		if wanted {
			q.Set(name, "true")
		}
	}
	if s.sub.Conflate {
		q.Set("overflow", "conflate")
	}
	address := "ws" + strings.TrimPrefix(s.client.base, "http") + "/ws/accounts?" + q.Encode()
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	dialer := s.client.dialer()
	dialer.WriteBufferSize, dialer.WriteBufferPool = 64<<10, &messageRoom
	conn, response, err := dialer.DialContext(ctx, address, s.client.header())
	if response != nil {
		s.client.note(response.Header)
	}
	switch {
	// A 101 that does not complete the handshake is an error, and no refusal.
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
	if s.listing && s.known { // names that were added: of what was listed of them some may be gone when they are listed again
		s.known, s.ready = false, 0
	}
	s.listing = false
	if s.known && len(s.names) == 0 {
		return s.resume(conn)
	}
	return s.ask(conn)
}

// ask begins to say the names, or where there are none, asks where the node stands.
func (s *stream) ask(conn *websocket.Conn) error {
	if s.said, s.answered = 0, 0; len(s.names) == 0 {
		s.awaits = "pong"
		return say(conn, []byte(`{"type":"ping","id":3}`))
	}
	s.awaits = "subscribed"
	return s.subscribe(conn)
}

// resume asks for what came after the newest number. What comes before the answer will come again.
func (s *stream) resume(conn *websocket.Conn) error {
	s.awaits = "resumed"
	return say(conn, []byte(`{"type":"resume","id":2,"from_seq":`+strconv.FormatUint(s.seq, 10)+`}`))
}

// say sends a message, which a connection that is lost does not take for ever.
func say(conn *websocket.Conn, text []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	return conn.WriteMessage(websocket.TextMessage, text)
}

// finalCodes are the close codes of messages that would be refused again.
var finalCodes = []int{websocket.CloseUnsupportedData, websocket.CloseInvalidFramePayloadData, websocket.CloseMessageTooBig}

// closedWith reports whether the node closed the connection with one of some codes.
func closedWith(err error, codes ...int) bool {
	var end *websocket.CloseError
	return errors.As(err, &end) && slices.Contains(codes, end.Code)
}
