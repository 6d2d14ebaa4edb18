package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ledgerd/bench/listen"
	"ledgerd/bench/proc"
)

// natsProgram is looked for beside the program that measures, then on the PATH.
const natsProgram = "nats-server"

var errNoNATS = &AbsentError{natsProgram, "`make load` builds it into bin/, from the version pinned in bench/peer/nats"}

// natsKeep keeps a server from dropping subscribers: what one may be behind is far more than a publisher runs ahead.
var natsKeep = []string{"max_connections: 65536", "max_pending: 1GB", `write_deadline: "60s"`}

const (
	// natsSubject is what messages are published under. A short one is short in each message.
	natsSubject = "a"
	// natsReadBytes is the most that a subscriber reads at once, as package listen does.
	natsReadBytes = 64 << 10
)

// natsServer is published to by a connection like any other.
type natsServer struct {
	*proc.NATS
	publisher *natsStream
	batch     []byte
	frames    int
}

func startNATS(ctx context.Context, c *Config) (Server, error) {
	program, err := FindNATS(c.Self[0])
	if err != nil {
		return nil, err
	}
	s := &natsServer{frames: len(c.Messages)}
	if s.NATS, err = proc.StartNATS(ctx, program, proc.NATSOptions{Dir: c.Dir, Lines: natsKeep}); err != nil {
		return nil, err
	}
	if s.publisher, err = s.open(ctx, ""); err != nil {
		return nil, errors.Join(err, s.NATS.Stop())
	}
	go func() { _ = s.publisher.Drain(func(listen.Batch) {}) }() // answers pings until Stop closes it
	for _, m := range c.Messages {
		s.batch = fmt.Appendf(s.batch, "PUB %s %d\r\n%s\r\n", natsSubject, len(m), m)
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

// open connects, subscribes if asked, and waits until the server knows that.
func (s *natsServer) open(ctx context.Context, subscribe string) (*natsStream, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addresses()[0])
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	stream := &natsStream{conn, bufio.NewReaderSize(conn, natsReadBytes)}
	if err := stream.greet(subscribe); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return stream, nil
}

// BatchFrames implements Server.
func (s *natsServer) BatchFrames() int { return s.frames }

// Publish implements Server.
func (s *natsServer) Publish() error {
	_, err := s.publisher.Write(s.batch)
	return err
}

// Pid implements Server.
func (s *natsServer) Pid() int { return s.Pids()[0] }

// Stop implements Server.
func (s *natsServer) Stop() error {
	_ = s.publisher.Close()
	return s.NATS.Stop()
}

// Dial implements Server.
func (s *natsServer) Dial(ctx context.Context) (listen.Stream, error) {
	return s.open(ctx, "SUB "+natsSubject+" 1\r\n")
}

// natsStream is a connection that speaks the text protocol.
type natsStream struct {
	net.Conn
	in *bufio.Reader
}

// greet answers INFO with CONNECT and what is subscribed, and waits for the PONG to what follows.
func (s *natsStream) greet(subscribe string) error {
	info, err := s.in.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(info, "INFO ") {
		return fmt.Errorf("no NATS server greets with %.40q", info)
	}
	hello := "CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":false,\"lang\":\"go\",\"version\":\"1\",\"protocol\":1}\r\n"
	if _, err := io.WriteString(s.Conn, hello+subscribe+"PING\r\n"); err != nil {
		return err
	}
	for {
		line, err := s.in.ReadString('\n')
		switch {
		case err != nil:
			return err
		case line == "PONG\r\n":
			return nil
		case strings.HasPrefix(line, "-ERR"):
			return errors.New(strings.TrimSpace(line))
		}
	}
}

// Drain implements listen.Stream. It answers pings.
func (s *natsStream) Drain(visit func(listen.Batch)) error {
	for {
		if _, err := s.in.Peek(s.in.Buffered() + 1); err != nil { // reads more, as much as there is
			return err
		}
		waiting, _ := s.in.Peek(s.in.Buffered()) // so much is there
		length, messages, pings, err := wholeMessages(waiting)
		if err != nil {
			return err
		}
		if messages > 0 {
			visit(listen.Batch{Data: waiting[:length], Frames: messages})
		}
		for range pings {
			if _, err := io.WriteString(s.Conn, "PONG\r\n"); err != nil {
				return err
			}
		}
		_, _ = s.in.Discard(length) // so much is there
	}
}

// wholeMessages returns how far whole messages and lines reach, and how many messages and pings there are among them. Only
// the lines are read.
func wholeMessages(b []byte) (length, messages, pings int, err error) {
	for {
		rest := b[length:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return length, messages, pings, nil
		}
		switch line := rest[:end+1]; {
		case line[0] == 'M': // MSG subject sid size
			size := 0
			for _, d := range line[bytes.LastIndexByte(line, ' ')+1 : max(end-1, 0)] {
				if d < '0' || d > '9' {
					return length, messages, pings, fmt.Errorf("not a message: %q", line)
				}
				size = 10*size + int(d-'0')
			}
			whole := end + 1 + size + 2
			if len(rest) < whole {
				return length, messages, pings, nil
			}
			length += whole
			messages++
			continue
		case line[0] == '-':
			return length, messages, pings, errors.New(strings.TrimSpace(string(line)))
		case string(line) == "PING\r\n":
			pings++
		}
		length += end + 1
	}
}
