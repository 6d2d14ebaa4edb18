package geyser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/metadata"

	"ledgerd/engine/source/upstream"
	"ledgerd/engine/source/yellowstone"
)

const (
	subscribeMethod = "/geyser.Geyser/Subscribe"
	// windowBytes is how much a node may send before we took it: what 300 ms at 400 Mbit/s are.
	windowBytes = 16 << 20
	readBytes   = 256 << 10 // of one read from the socket
	headerBytes = 64 << 10  // of all headers of a response
	dialTimeout = 5 * time.Second
	// callTimeout is for a call to begin: a server may take connections and allow no call on them.
	callTimeout = dialTimeout + idleTimeout
)

// grpc tells what it has to say of connections in the errors of calls; its own lines would stand between the messages, in another form.
func init() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }

// errNoCall is why a session ends on whose connection no call could begin.
var errNoCall = errors.New("the node ended the connection before the call began")

// subscribeCall says that both sides send many messages.
var subscribeCall = grpc.StreamDesc{StreamName: "Subscribe", ServerStreams: true, ClientStreams: true}

// connection is one subscription on a connection of its own.
type connection struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	client *grpc.ClientConn
	stream grpc.ClientStream
	stats  *upstream.Stats
	queue  *queue

	pings    chan struct{} // holds a token while a ping has to be answered
	replays  chan []byte   // holds a request for another replay until it is sent
	received atomic.Uint64 // messages
	shown    atomic.Uint64 // of them, that were no pings
	waits    atomic.Bool   // the reader waits for the socket
	ended    chan struct{} // closed when read returned
	err      error         // what ended it, after ended
	running  sync.WaitGroup
}

// connect dials the node, subscribes and begins to read. close must follow.
func (s *Source) connect(ctx context.Context, sub subscription) (*connection, error) {
	headers, err := s.config.Headers.Read()
	if err != nil {
		return nil, &sessionError{upstream.Refused, err}
	}
	s.secrets = headers.Secrets()
	client, err := grpc.NewClient("passthrough:///"+s.config.Addresses[s.node], s.dialOptions(headers)...)
	if err != nil {
		return nil, &sessionError{upstream.Dial, err}
	}
	c := &connection{
		client: client, stats: &s.stats, queue: newQueue(s.config.QueueBytes), pings: make(chan struct{}, 1),
		replays: make(chan []byte, 1), ended: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	begins := time.AfterFunc(callTimeout, func() { c.cancel(errStalled) })
	c.ctx = metadata.AppendToOutgoingContext(c.ctx, headers...)
	c.stream, err = client.NewStream(c.ctx, &subscribeCall, subscribeMethod,
		grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(s.config.MessageBytes),
		experimental.AcceptCompressors(cmp.Or(s.config.Compression, noCompression)))
	if err == nil {
		if err = c.stream.SendMsg(sub.encode()); errors.Is(err, io.EOF) {
			err = c.stream.RecvMsg(new(message)) // it knows why
		}
	}
	begins.Stop()
	if err != nil {
		err = c.explain(err)
		c.close()
		return nil, err
	}
	c.running.Go(func() {
		defer close(c.ended)
		c.err = c.read(yellowstone.Decoder{Sliced: sub.sliced, Data: s.config.Data})
	})
	c.running.Go(c.answer)
	return c, nil
}

func (s *Source) dialOptions(headers upstream.Headers) []grpc.DialOption {
	transport := insecure.NewCredentials()
	if s.config.TLS != nil {
		transport = credentials.NewTLS(s.config.TLS)
	}
	isDialled := new(atomic.Bool)
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			if isDialled.Swap(true) { // grpc dials again and again, without a pause, while a server ends each connection before the call
				return nil, errNoCall
			}
			return s.config.Dial(ctx, "tcp", address)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialTimeout}),
		grpc.WithStaticStreamWindowSize(windowBytes), grpc.WithStaticConnWindowSize(windowBytes),
		grpc.WithReadBufferSize(readBytes), grpc.WithMaxHeaderListSize(headerBytes),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithIdleTimeout(0),
		grpc.WithUserAgent(cmp.Or(headers.Get("user-agent"), "ledgerd")), // of headers it takes none
	}
}

// read takes messages from the socket until something ends it.
func (c *connection) read(decoder yellowstone.Decoder) error {
	m := message{decoder: decoder}
	for {
		c.waits.Store(true)
		err := c.stream.RecvMsg(&m)
		c.waits.Store(false)
		if err != nil {
			return c.explain(err)
		}
		if c.received.Add(1) == 1 {
			c.stats.Connected()
		}
		c.stats.Received(m.size)
		if m.err != nil {
			return &sessionError{upstream.Garbage, fmt.Errorf("a message of %d bytes cannot be read: %w", m.size, m.err)}
		}
		switch m.update.Kind {
		case yellowstone.Other:
			continue
		case yellowstone.Ping:
			token(c.pings)
			continue
		case yellowstone.Slot:
			if m.update.Status == yellowstone.Processed {
				c.stats.Saw(m.update.Slot)
			}
		}
		c.shown.Add(1)
		if err := c.queue.put(c.ctx, &m.update, m.size); err != nil {
			return c.explain(err)
		}
	}
}

// answer answers the node's pings, so that nothing between takes the call for idle, and sends requests for a replay.
func (c *connection) answer() {
	for {
		request := encodePing()
		select {
		case <-c.pings:
		case request = <-c.replays:
		case <-c.ctx.Done():
			return
		}
		if c.stream.SendMsg(request) != nil {
			return // the reader learns why
		}
	}
}

// replay has the node show again, on this connection, what it keeps from the begin of sub on, and then go on.
func (c *connection) replay(sub subscription) {
	select {
	case c.replays <- sub.encode():
	default: // one is under way
	}
}

// close ends the connection and waits for its goroutines.
func (c *connection) close() {
	c.cancel(nil)
	c.running.Wait()
	c.client.Close()
}
