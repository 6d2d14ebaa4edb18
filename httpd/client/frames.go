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
	handler Handler

	known bool   // the handler was told a Start, with all of its snapshot
	seq   uint64 // the newest of any frame
	// same are the frames that carried the newest number, and may come again after a resume.
	same map[uint64]struct{}

	// Of the present connection:

	awaits    string // an answer, before which nothing counts; empty: none
	listing   bool   // members of a snapshot come
	restoring bool   // since a resume, until a frame has a newer number
}

// seed is of the hashes of frames.
var seed = maphash.MakeSeed()

// frame is any frame of a node, as far as it decides what becomes of it.
type frame struct {
	Type    string `json:"type"`
	Slot    uint64 `json:"slot"`
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
		told = s.awaits == "" // whoever is let go before that comes back later and later
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
	case "resync_required":
		return s.resync(conn)
	case s.awaits:
		s.answered(&f)
		return nil
	case "subscribed", "resumed", "pong":
		return nil
	}
	if s.awaits != "" || s.again(&f, text) {
		return nil
	}
	return s.tell(&f, text)
}

// answered takes in the answer from which on frames count.
func (s *stream) answered(f *frame) {
	switch s.awaits {
	case "resumed":
		s.restoring = true
	case "pong":
		s.begin(Start{f.Slot, f.Seq, false})
		s.known = true
	case "subscribed":
		s.begin(Start{f.Slot, f.Seq, true})
		s.listing = true
	}
	s.awaits = ""
}

// begin has the handler forget all.
func (s *stream) begin(at Start) {
	s.seq, s.same, s.restoring = at.Seq, make(map[uint64]struct{}), false
	if s.handler.Start != nil {
		s.handler.Start(at)
	}
}

// resync begins anew where the node does not know any more what the stream missed.
func (s *stream) resync(conn *websocket.Conn) error {
	if s.known = false; s.sub.names() > 0 {
		s.awaits = "subscribed"
		return s.subscribe(conn)
	}
	s.awaits = "pong"
	return s.ping(conn)
}

// again reports whether a frame was told before: after a resume those come again that carry the very number that it went on from. It keeps
// which frames carry the newest number.
func (s *stream) again(f *frame, text []byte) bool {
	if s.listing {
		return false
	}
	if f.Seq > s.seq {
		s.seq, s.restoring = f.Seq, false
		clear(s.same)
	}
	if f.Seq < s.seq || f.Type == "heartbeat" {
		return false
	}
	hash := maphash.Bytes(seed, text)
	_, told := s.same[hash]
	s.same[hash] = struct{}{}
	return told && s.restoring
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
	case "snapshot_end":
		if s.listing, s.known = false, true; s.handler.Ready != nil {
			s.handler.Ready()
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
