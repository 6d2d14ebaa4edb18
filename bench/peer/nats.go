package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"ledgerd/bench/listen"
	"ledgerd/bench/proc"
)

// natsProgram is looked for beside the program that measures, then on the PATH.
const natsProgram = "nats-server"

var errNoNATS = &AbsentError{natsProgram, "`make load` builds it into bin/, from the version pinned in bench/peer/nats"}

// natsKeep keeps a server from dropping subscribers: what one may be behind is far more than a publisher runs ahead, and
// nobody is asked whether he is there.
var natsKeep = []string{"max_connections: 65536", "max_pending: 1GB", `write_deadline: "60s"`, `ping_interval: "1h"`}

// natsSubject is what messages are published under. A short one is short in each message.
const natsSubject = "a"

// natsServer is published to by a connection of the Go client.
type natsServer struct {
	*proc.NATS
	publisher *nats.Conn
	messages  [][]byte
	bytes     int // of a batch, as a subscriber receives it
}

func startNATS(ctx context.Context, c *Config) (Server, error) {
	program, err := FindNATS(c.Self[0])
	if err != nil {
		return nil, err
	}
	s := &natsServer{messages: c.Messages}
	for _, m := range c.Messages {
		s.bytes += len(fmt.Sprintf("MSG %s 1 %d\r\n%s\r\n", natsSubject, len(m), m))
	}
	if s.NATS, err = proc.StartNATS(ctx, program, proc.NATSOptions{Dir: c.Dir, Lines: natsKeep}); err != nil {
		return nil, err
	}
	if s.publisher, err = nats.Connect("nats://"+s.Addresses()[0], nats.NoReconnect()); err != nil {
		return nil, errors.Join(err, s.NATS.Stop())
	}
	return s, nil
}

// FindNATS returns the nats-server that lies beside a program, else the one on the PATH. It returns an *AbsentError if there
// is none.
func FindNATS(self string) (string, error) {
	for _, place := range []string{filepath.Join(filepath.Dir(self), natsProgram), natsProgram} {
		if found, err := exec.LookPath(place); err == nil {
			return found, nil
		}
	}
	return "", errNoNATS
}

// BatchFrames implements Server.
func (s *natsServer) BatchFrames() int { return len(s.messages) }

// Publish implements Server.
func (s *natsServer) Publish() error {
	for _, m := range s.messages {
		if err := s.publisher.Publish(natsSubject, m); err != nil {
			return err
		}
	}
	return s.publisher.Flush()
}

// Pid implements Server.
func (s *natsServer) Pid() int { return s.Pids()[0] }

// Stop implements Server.
func (s *natsServer) Stop() error {
	err := s.NATS.Stop() // which ends a Publish that waits
	s.publisher.Close()
	return err
}

// Dial implements Server. It speaks the text protocol, so that what comes can be drained, and waits until the server knows
// the subscription.
func (s *natsServer) Dial(ctx context.Context) (listen.Stream, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addresses()[0])
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
	return listen.Drain(conn, len(s.messages), s.bytes), nil
}
