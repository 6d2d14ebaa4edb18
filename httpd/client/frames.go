package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/fasthttp/websocket"
)

// stream is a subscription through all of its connections.
type stream struct {
	client  *Client
	sub     Subscription
	names   []name
	handler Handler

	known bool   // the handler was told a Start, with all of its snapshot
	ready int    // names whose state the handler was told
	seq   uint64 // the newest of any frame
	same  same   // the frames that carried it

	// Of the present connection:

	said     int    // names
	answered int    // of them, which the node said that it tells of
	awaits   string // an answer, before which nothing counts; empty: none
	listing  bool   // members of a snapshot come
}

// seed is of the hashes of frames.
var seed = maphash.MakeSeed()

// frame is any frame of a node, as far as it decides what becomes of it.
type frame struct {
	Type    string `json:"type"`
	Slot    uint64 `json:"slot"`
	ToSlot  uint64 `json:"to_slot"` // of a rollback, which has no slot
	Seq     uint64 `json:"seq"`
	Error   string `json:"error"`
	Details string `json:"details"`
}

// connection connects and reads frames until the connection ends, and returns why. told says that anything came over it.
func (s *stream) connection(ctx context.Context) (told bool, err error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() {
		goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
		_ = conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Second)) // who leaves waits for no answer
		_ = conn.Close()
	})
	defer stop()
	if err := s.open(conn); err != nil {
		return false, fmt.Errorf("cannot subscribe: %w", err)
	}
	for {
		if err := conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return told, err
		}
		_, text, err := conn.ReadMessage()
		if err != nil {
			return told, fmt.Errorf("the connection ended: %w", err)
		}
		if err := s.take(conn, text); err != nil {
			return told, err
		}
		told = s.awaits == "" && s.answered == len(s.names) // whoever is let go before that comes back later and later
	}
}

// take hands a frame on.
func (s *stream) take(conn *websocket.Conn, text []byte) error {
	var f frame
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("cannot read a frame: %w", err)
	}
	switch f.Type {
	case "error":
		return &StatusError{Status: http.StatusBadRequest, Text: f.Error, Details: f.Details} // the next would be the same
	case "resync_required": // the node does not know any more what the stream missed
		s.known, s.ready = false, 0
		return s.ask(conn)
	case "subscribed":
		return s.subscribed(conn, &f)
	case s.awaits:
		if s.awaits = ""; f.Type == "pong" {
			s.begin(Start{f.Slot, f.Seq, false})
			s.known = true
		}
		s.same.restoring = f.Type == "resumed"
		return nil
	case "resumed", "pong":
		return nil
	}
	if s.awaits != "" || s.again(&f, text) {
		return nil
	}
	if f.Type == "snapshot_end" {
		return s.listed(conn)
	}
	if err := s.tell(&f, text); err != nil {
		return err
	}
	return s.grow(conn)
}

// grow asks for names that were added, where nothing else is asked. A frame comes each second.
func (s *stream) grow(conn *websocket.Conn) error {
	if !s.known || s.listing || s.said > s.answered || s.sub.More == nil {
		return nil
	}
	if s.answered == len(s.names) {
		s.names = append(s.names, s.sub.More.taken()...)
	}
	switch n := len(s.names); {
	case n > maxNames:
		return &StatusError{Status: http.StatusBadRequest, Text: "too many names", Details: fmt.Sprintf("a stream has at most %d names, this one %d", maxNames, n)}
	case n == s.answered:
		return nil
	}
	return s.subscribe(conn)
}

// subscribed takes in that the node tells of the names that were said last. Unless the stream knows their state, their snapshot follows.
func (s *stream) subscribed(conn *websocket.Conn, f *frame) error {
	first := s.answered == 0
	s.answered = s.said
	switch {
	case s.answered == s.ready:
		return s.resume(conn)
	case s.answered < s.ready:
		return s.subscribe(conn)
	case !s.known && first:
		s.begin(Start{f.Slot, f.Seq, true})
	}
	s.reach(f.Seq) // all that came before was told of the names before, and is in the snapshot of these
	s.awaits, s.listing = "", true
	return nil
}

// listed takes in the end of a snapshot, and goes on with the names that are left.
func (s *stream) listed(conn *websocket.Conn) error {
	if s.listing = false; s.known {
		s.ready = s.answered
	}
	if s.answered < len(s.names) {
		return s.subscribe(conn)
	}
	if s.known, s.ready = true, s.answered; s.handler.Ready != nil {
		s.handler.Ready()
	}
	return nil
}

// begin has the handler forget all.
func (s *stream) begin(at Start) {
	s.seq, s.same = at.Seq, same{}
	if s.handler.Start != nil {
		s.handler.Start(at)
	}
}

// reach notes the number of a frame.
func (s *stream) reach(seq uint64) {
	if seq > s.seq {
		s.seq, s.same = seq, same{}
	}
}

// again reports whether a frame was told before: after a resume those come again that carry the very number that it went on from.
func (s *stream) again(f *frame, text []byte) bool {
	if s.listing {
		return false
	}
	if s.reach(f.Seq); f.Seq < s.seq || f.Type == "heartbeat" {
		return false
	}
	return !s.same.add(f, maphash.Bytes(seed, text))
}

// tell hands a frame to the handler.
func (s *stream) tell(f *frame, text []byte) error {
	switch f.Type {
	case "account_update":
		return hand(text, s.handler.Update)
	case "rollback":
		return hand(text, s.handler.Rollback)
	case "gap":
		return hand(text, s.handler.Gap)
	case "slot_end":
		if s.handler.SlotEnd != nil {
			s.handler.SlotEnd(f.Slot, f.Seq)
		}
	case "heartbeat":
		if s.handler.Heartbeat != nil {
			s.handler.Heartbeat(f.Slot, f.Seq)
		}
	}
	return nil // frames of later versions are none of ours
}

// hand reads a frame and hands it on, if anybody wants it.
func hand[T any](text []byte, to func(T)) error {
	if to == nil {
		return nil
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return errors.Join(errors.New("cannot read a frame"), err)
	}
	to(v)
	return nil
}
