package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/nats-io/nats.go"

	"ledgerd/bench/listen"
	"ledgerd/bench/proc"
)

// natsKeep keeps a server from dropping subscribers: what one may be behind is far more than a publisher runs ahead, and
// nobody is asked whether he is there.
var natsKeep = []string{"max_connections: 65536", "max_pending: 1GB", `write_deadline: "60s"`, `ping_interval: "1h"`}

// natsSubject is what messages are published under. A short one is short in each message.
const natsSubject = "a"

// startNATS starts one that is published to by a connection of the Go client.
func startNATS(ctx context.Context, c *Config, _ string, s *Server) error {
	program, err := proc.Find("nats-server", c.Self[0])
	if err != nil {
		return err
	}
	server, err := proc.StartNATS(ctx, program, proc.NATSOptions{Dir: c.Dir, Lines: natsKeep})
	if err != nil {
		return err
	}
	publisher, err := nats.Connect("nats://"+server.Addresses()[0], nats.NoReconnect())
	s.atStop(func() error { publisher.Close(); return nil }) // which may be nil
	s.atStop(server.Stop)                                    // the first: it ends a Publish that waits
	s.pids, s.BatchFrames = server.Pids(), len(c.Messages)
	batchBytes := 0 // as a subscriber receives it
	for _, m := range c.Messages {
		batchBytes += len(fmt.Sprintf("MSG %s 1 %d\r\n%s\r\n", natsSubject, len(m), m))
	}
	s.Dial = func(ctx context.Context) (listen.Stream, error) {
		conn, err := dialNATS(ctx, server.Addresses()[0])
		if err != nil {
			return nil, err
		}
		return listen.Drain(conn, len(c.Messages), batchBytes), nil
	}
	s.Publish = func() error {
		for _, m := range c.Messages {
			if err := publisher.Publish(natsSubject, m); err != nil {
				return err
			}
		}
		return publisher.Flush()
	}
	return err
}

// dialNATS subscribes in the text protocol, so that what comes can be drained, and waits until the server knows the
// subscription.
func dialNATS(ctx context.Context, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = fmt.Fprintf(conn, "CONNECT {\"verbose\":false}\r\nSUB %s 1\r\nPING\r\n", natsSubject)
	for in, line := bufio.NewReader(conn), ""; err == nil && line != "PONG\r\n"; {
		line, err = in.ReadString('\n')
		if strings.HasPrefix(line, "-ERR") {
			err = errors.New(strings.TrimSpace(line))
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
