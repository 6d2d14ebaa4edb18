package nodetest

import (
	"context"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"ledgerd/engine/ledger"
)

// rawCodec passes messages on as they are: *[]byte.
type rawCodec struct{}

func (rawCodec) Name() string                       { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }

// NewStreamServer returns a server of geyser.Geyser, whose calls of Subscribe are served by a function. Messages are as they are on the
// wire: *[]byte. Unary calls are not offered: UNIMPLEMENTED.
func NewStreamServer(subscribe func(grpc.ServerStream) error, options ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options, grpc.ForceServerCodec(rawCodec{}), grpc.MaxRecvMsgSize(64<<20), grpc.WaitForHandlers(true),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			if method, _ := grpc.MethodFromServerStream(stream); method != "/geyser.Geyser/Subscribe" {
				return status.Error(codes.Unimplemented, method)
			}
			return subscribe(stream)
		}))...)
}

// subscribe serves one subscriber.
func (n *Node) subscribe(stream grpc.ServerStream) error {
	ctx := stream.Context() // ends with the node, too
	md, _ := metadata.FromIncomingContext(ctx)
	if n.config.Token != "" && !slices.Contains(md.Get("x-token"), n.config.Token) {
		return status.Error(codes.Unauthenticated, "No valid auth token")
	}
	first, err := Receive(stream)
	if err != nil {
		return err
	}
	s := &subscriber{node: n, stream: stream, request: first}
	if err := s.begin(); err != nil {
		return err
	}
	requests := make(chan *Request)
	ended := make(chan error, 1)
	go func() { ended <- receiveMore(ctx, stream, requests) }()
	return s.serve(ctx, requests, ended)
}

// Receive reads a request. Where there is an error it returns one that asks for nothing.
func Receive(stream grpc.ServerStream) (*Request, error) {
	var raw []byte
	if err := stream.RecvMsg(&raw); err != nil {
		return new(Request), err
	}
	r, err := ParseRequest(raw)
	if err != nil {
		return new(Request), status.Error(codes.InvalidArgument, err.Error())
	}
	return r, nil
}

// receiveMore reads requests until the client says no more. Handlers end after their stream does,
// so the goroutine that runs it ends with the stream.
func receiveMore(ctx context.Context, stream grpc.ServerStream, to chan<- *Request) error {
	for {
		r, err := Receive(stream)
		if err != nil {
			return err
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// subscriber is one open stream.
type subscriber struct {
	node    *Node
	stream  grpc.ServerStream
	request *Request

	begun int // where in the node's log it began
	at    int // the next message of that
}

// begin begins the stream, with a ping (grpc.rs, subscribe: since 2026-01). The node drops what it tells before it knows the filters,
// so the stream begins anywhere in the newest slot.
func (s *subscriber) begin() error {
	if err := s.write(pingMessage, nil); err != nil {
		return err
	}
	n := s.node
	n.mu.Lock()
	slotAt := n.ends[max(0, n.played-1)]
	s.begun = slotAt + n.random.IntN(n.ends[n.played]-slotAt+1)
	s.at = s.begun
	n.mu.Unlock()
	return s.replay()
}

// replay shows again what the client asks for of what was told, as far as it is kept.
func (s *subscriber) replay() error {
	n := s.node
	n.mu.Lock()
	past, newest := n.log[:s.at], n.ledger.first+ledger.Slot(n.played)-1
	n.mu.Unlock()
	oldest := newest - min(newest, n.config.ReplaySlots)
	unavailable := func(code codes.Code, last ledger.Slot) error {
		return status.Errorf(code, "broadcast from %d is not available, last available: %d", s.request.FromSlot.Value, last)
	}
	from := s.request.FromSlot
	if from.Known {
		f, _ := n.faults.take(Refuse, IgnoreFrom, ReplayAll)
		switch f.Kind {
		case Refuse:
			return unavailable(f.Code, newest)
		case IgnoreFrom:
			from.Known = false
		case ReplayAll:
			from.Value = oldest
		}
	}
	switch {
	case n.config.NoAny && s.request.any():
		return status.Error(codes.InvalidArgument, "failed to create filter: Subscribe on full stream with `any` is not allowed, at least one filter required")
	case from.Known && n.config.NoReplay:
		return status.Error(codes.Internal, "from_slot is not supported")
	case from.Known && from.Value < oldest:
		return unavailable(codes.OutOfRange, oldest)
	}
	n.mu.Lock()
	n.granted++
	n.mu.Unlock()
	if !from.Known {
		return nil
	}
	again := frozen(past, from.Value)
	if len(again) == 0 {
		return status.Error(codes.Internal, "failed to get replay response")
	}
	for _, m := range again {
		if err := s.send(m); err != nil {
			return err
		}
	}
	return nil
}

// pingEvery is how often the server pings.
const pingEvery = 10 * time.Second

// serve sends what is told until the stream ends.
func (s *subscriber) serve(ctx context.Context, requests <-chan *Request, ended <-chan error) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		messages, more := s.node.told(s.at)
		for _, m := range messages {
			if err := s.send(m); err != nil {
				return err
			}
			s.at++
			if f, ok := s.node.faults.take(Duplicate); ok {
				s.at = max(s.begun, s.at-f.N)
				break
			}
		}
		if f, ok := s.node.faults.take(Kick); ok {
			return status.Error(f.Code, "lagged to receive geyser messages") // nil for OK
		}
		select {
		case <-more:
		case <-ping.C:
			if err := s.write(pingMessage, nil); err != nil {
				return err
			}
		case r := <-requests:
			if err := s.ask(r); err != nil {
				return err
			}
		case err := <-ended:
			if err == io.EOF { // it will ask for nothing more, but listens
				ended = nil
				continue
			}
			return err
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

// ask takes another request: a ping, or the filters from now on, with a replay.
func (s *subscriber) ask(r *Request) error {
	if r.Ping != nil {
		return s.write(pongMessage, Wire(nil).nonzero(1, r.Ping.ID))
	}
	s.request = r
	return s.replay()
}

// send sends a message as far as it passes the filters, with what goes wrong with it.
func (s *subscriber) send(m *message) error {
	filter, passes := s.request.passes(m)
	if !passes {
		return nil
	}
	for _, m := range s.spoil(m) {
		if err := s.write(m.kind, m.part(s.request.Slices), []byte(filter)); err != nil {
			return err
		}
	}
	if _, ok := s.node.faults.take(Garbage); ok {
		return s.stream.SendMsg(&garbage)
	}
	return nil
}

// write sends an update as a server does: with the names of the filters that it passed, and when it was made.
func (s *subscriber) write(kind messageKind, part []byte, filters ...[]byte) error {
	now := time.Now()
	at := Wire(nil).nonzero(1, uint64(now.Unix())).nonzero(2, uint64(now.Nanosecond()))
	b := []byte(Wire(nil).Bytes(1, filters...).Bytes(kind, part).Bytes(11, at))
	return s.stream.SendMsg(&b)
}
