package peer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// natsProgram is looked for beside the program that measures, then on the PATH.
const natsProgram = "nats-server"

var errNoNATS = &AbsentError{natsProgram, "`make load` builds it into bin/, from the version pinned in bench/peer/nats"}

// natsConfig lets the server listen where there is room and say where, and keeps it from
// dropping subscribers: what a client may be behind is far more than any publisher runs ahead.
const natsConfig = `listen: "127.0.0.1:-1"
ports_file_dir: %q
max_connections: 65536
max_pending: 1GB
write_deadline: "60s"
`

// natsStartPatience is how long the server may take to listen.
const natsStartPatience = 20 * time.Second

// natsSubject is what messages are published under. A short one is short in each message.
const natsSubject = "a"

// natsServer is published to by a connection like any other.
type natsServer struct {
	*process
	addr      string
	dir       string
	publisher net.Conn
	listening chan struct{} // closed when nobody answers the publisher's pings any more
	batch     []byte
	frames    int
}

func startNATS(ctx context.Context, c *Config) (Server, error) {
	program, err := FindNATS(c.Self[0])
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, "nats-")
	if err != nil {
		return nil, err
	}
	s := &natsServer{dir: dir, frames: len(c.Messages), listening: make(chan struct{})}
	config := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, natsConfig, dir), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.process, err = launch(exec.CommandContext(ctx, program, "--config", config)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, &s.stderr), s.Stop())
	}
	for _, m := range c.Messages {
		s.batch = fmt.Appendf(s.batch, "PUB %s %d\r\n%s\r\n", natsSubject, len(m), m)
	}
	return s, nil
}

// FindNATS returns the nats-server that lies beside a program, else the one on the PATH. It returns an *AbsentError if there is none.
func FindNATS(self string) (string, error) {
	for _, place := range []string{filepath.Join(filepath.Dir(self), natsProgram), natsProgram} {
		if found, err := exec.LookPath(place); err == nil {
			return found, nil
		}
	}
	return "", errNoNATS
}

// NATSVersion returns what nats-server says that it is, "" if there is none: the one that a peer
// would start whose Config.Self begins with a program.
func NATSVersion(ctx context.Context, self string) string {
	program, err := FindNATS(self)
	if err != nil {
		return ""
	}
	said, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSpace(string(said)), ": v", " ")
}

// connect waits for the server and connects the publisher.
func (s *natsServer) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, natsStartPatience)
	defer cancel()
	for {
		addr, err := s.address()
		if err == nil {
			s.addr = addr
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not say where it listens: %w", err)
		case <-s.ended:
			return errors.New("it ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
	conn, reader, err := s.open(ctx, "")
	if err != nil {
		return err
	}
	s.publisher = conn
	go func() {
		defer close(s.listening)
		_ = drainNATS(conn, reader, func(int, int) {}) // until it is closed
	}()
	return nil
}

// address reads the file in which the server says where it listens.
func (s *natsServer) address() (string, error) {
	file := filepath.Join(s.dir, fmt.Sprintf("%s_%d.ports", filepath.Base(s.cmd.Path), s.cmd.Process.Pid))
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var ports struct{ NATS []string }
	if err := json.Unmarshal(b, &ports); err != nil {
		return "", err
	}
	if len(ports.NATS) == 0 {
		return "", fmt.Errorf("%s names no address: %s", file, b)
	}
	u, err := url.Parse(ports.NATS[0])
	if err != nil {
		return "", err
	}
	return u.Host, nil
}

// open connects, says what it must, and waits until the server has heard it.
func (s *natsServer) open(ctx context.Context, subscribe string) (net.Conn, *bufio.Reader, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return nil, nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	reader := bufio.NewReaderSize(conn, 4<<10)
	err = greetNATS(conn, reader, subscribe)
	if err := errors.Join(err, conn.SetDeadline(time.Time{})); err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, reader, nil
}

// greetNATS answers INFO with CONNECT and what is subscribed, and awaits the PONG behind that.
func greetNATS(w io.Writer, r *bufio.Reader, subscribe string) error {
	info, err := r.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(info, "INFO ") {
		return fmt.Errorf("no NATS server greets with %.40q", info)
	}
	hello := "CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":false,\"lang\":\"go\",\"version\":\"1\",\"protocol\":1}\r\n"
	if _, err := io.WriteString(w, hello+subscribe+"PING\r\n"); err != nil {
		return err
	}
	for {
		line, err := r.ReadString('\n')
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

// BatchFrames implements Server.
func (s *natsServer) BatchFrames() int { return s.frames }

// Publish implements Server.
func (s *natsServer) Publish() error {
	_, err := s.publisher.Write(s.batch)
	return err
}

// Stop implements Server.
func (s *natsServer) Stop() error {
	if s.publisher != nil {
		_ = s.publisher.Close()
		<-s.listening
	}
	err := s.stop(syscall.SIGINT) // on which it exits with 0
	if removed := os.RemoveAll(s.dir); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// Dial implements Server.
func (s *natsServer) Dial(ctx context.Context) (Subscriber, error) {
	conn, reader, err := s.open(ctx, "SUB "+natsSubject+" 1\r\n")
	if err != nil {
		return nil, err
	}
	return &natsSubscriber{conn, reader}, nil
}

type natsSubscriber struct {
	net.Conn
	reader *bufio.Reader // of the greeting; it may hold more
}

// Drain implements Subscriber.
func (s *natsSubscriber) Drain(visit func(bytes, frames int)) error {
	return drainNATS(s.Conn, s.reader, visit)
}

// drainNATS reads messages and answers pings until the connection ends.
func drainNATS(conn io.ReadWriter, begun *bufio.Reader, visit func(bytes, frames int)) error {
	first, err := begun.Peek(begun.Buffered())
	if err != nil {
		return err
	}
	room := make([]byte, readBytes)
	held := copy(room, first)
	for {
		hop, messages, pings, err := hopNATS(room[:held])
		if err != nil {
			return err
		}
		if messages > 0 {
			visit(hop, messages)
		}
		for range pings {
			if _, err := io.WriteString(conn, "PONG\r\n"); err != nil {
				return err
			}
		}
		held = copy(room, room[hop:held])
		if held == len(room) {
			return errors.New("a message is too long")
		}
		n, err := conn.Read(room[held:])
		if held += n; n == 0 && err != nil {
			return err
		}
	}
}

// hopNATS returns how far whole messages and lines reach, and how many messages and pings
// there are among them. Only the lines are looked at.
func hopNATS(b []byte) (hop, messages, pings int, err error) {
	for {
		rest := b[hop:]
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return hop, messages, pings, nil
		}
		switch line := rest[:end+1]; {
		case line[0] == 'M': // MSG subject sid size
			size := 0
			for _, d := range line[bytes.LastIndexByte(line, ' ')+1 : max(end-1, 0)] {
				if d < '0' || d > '9' {
					return hop, messages, pings, fmt.Errorf("not a message: %q", line)
				}
				size = 10*size + int(d-'0')
			}
			whole := end + 1 + size + 2
			if len(rest) < whole {
				return hop, messages, pings, nil
			}
			hop += whole
			messages++
			continue
		case line[0] == '-':
			return hop, messages, pings, errors.New(strings.TrimSpace(string(line)))
		case string(line) == "PING\r\n":
			pings++
		}
		hop += end + 1
	}
}
