package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/proc"
)

// The programs that speak the protocol of Redis.
const (
	redisProgram  = "redis-server"
	valkeyProgram = "valkey-server"
)

const (
	// redisPatience is how long a server may take to load what its directory holds.
	redisPatience = 10 * time.Minute
	// redisBufferBytes is how much of a pipeline is written or read at once.
	redisBufferBytes = 256 << 10
)

// Redis is a running redis-server that keeps data instead of telling it: the peer of ledgerd's
// memory and of its durability. It is spoken to by one connection, over a socket of the file
// system, which is the fastest that it has. One goroutine at a time may use it.
type Redis struct {
	*proc.Process
	sockets string // directory
	conn    net.Conn
	replies *bufio.Reader
}

// StartRedis starts a server on a directory, and returns when it has loaded what that holds. It
// takes no snapshot by itself and keeps no log unless the options, which follow, say so. The
// process ends at the latest with ctx. It returns an *AbsentError if there is no such program.
func StartRedis(ctx context.Context, dir string, options ...string) (*Redis, error) {
	return startRedis(ctx, redisProgram, dir, options...)
}

func startRedis(ctx context.Context, name, dir string, options ...string) (*Redis, error) {
	program, err := find(name)
	if err != nil {
		return nil, fmt.Errorf("cannot start redis: %w", err)
	}
	// The path of a socket must be short, which that of a directory for data need not be.
	sockets, err := os.MkdirTemp("", "redis-")
	if err != nil {
		return nil, fmt.Errorf("cannot start redis: %w", err)
	}
	s := &Redis{sockets: sockets}
	socket := filepath.Join(sockets, "s")
	words := append([]string{program, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--loglevel", "warning"}, options...)
	if s.Process, err = proc.Launch(ctx, proc.Command{Words: words}); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start redis: %w", err), os.RemoveAll(sockets))
	}
	if err := s.connect(ctx, socket); err != nil {
		return nil, errors.Join(s.Failure(fmt.Sprintf("cannot start redis: %v", err)), s.Stop())
	}
	return s, nil
}

// connect waits until the server answers from what it has loaded.
func (s *Redis) connect(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	for {
		err := s.dial(ctx, socket)
		if err == nil {
			return nil
		}
		select {
		case <-s.Gone():
			return errors.New("it ended")
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(time.Millisecond):
		}
	}
}

func (s *Redis) dial(ctx context.Context, socket string) (err error) {
	if s.conn == nil {
		if s.conn, err = new(net.Dialer).DialContext(ctx, "unix", socket); err != nil {
			s.conn = nil // not a nil connection in a net.Conn
			return err
		}
		s.replies = bufio.NewReaderSize(s.conn, redisBufferBytes)
	}
	_, err = s.Do("GET", "")
	return err
}

// Do has one command carried out and returns its reply, "" for nil.
func (s *Redis) Do(words ...string) (reply string, err error) {
	if _, err := s.conn.Write(AppendCommand(nil, words...)); err != nil {
		return "", err
	}
	line, err := s.reply()
	if err != nil || line[0] != '$' {
		return line, err
	}
	size, err := strconv.Atoi(line[1:])
	if err != nil || size < 0 {
		return "", err
	}
	body := make([]byte, size+len("\r\n"))
	_, err = io.ReadFull(s.replies, body)
	return string(body[:size]), err
}

// reply reads the first line of a reply.
func (s *Redis) reply() (string, error) {
	line, err := s.replies.ReadSlice('\n')
	if err != nil {
		return "", err
	}
	if line[0] == '-' {
		return "", errors.New(strings.TrimSpace(string(line[1:])))
	}
	return strings.TrimSuffix(string(line), "\r\n"), nil
}

// Version returns what the server says that it is, "" if it does not.
func (s *Redis) Version() string {
	info, err := s.Do("INFO", "server")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			return "redis-server " + strings.TrimSpace(v)
		}
	}
	return ""
}

// Pipe has commands carried out whose replies are one line each: write appends the next ones to
// what it is given and says how many they are, 0 when there are no more. The replies are read
// meanwhile. It returns when the last is there.
func (s *Redis) Pipe(write func(dst []byte) (commands []byte, count int)) error {
	sent := make(chan int, 1024) // so many batches may be under way
	failed := make(chan error, 1)
	go func() {
		defer close(sent)
		var batch []byte
		for {
			next, count := write(batch[:0])
			if count == 0 {
				failed <- nil
				return
			}
			batch = next
			sent <- count
			if _, err := s.conn.Write(batch); err != nil {
				failed <- err
				return
			}
		}
	}()
	var err error
	for count := range sent {
		for range count {
			if err == nil {
				_, err = s.reply()
			}
		}
		if err != nil {
			_ = s.conn.Close() // so that the writer ends too
		}
	}
	return errors.Join(err, <-failed)
}

// Stop ends the process and waits for it. What no log and no snapshot holds is gone.
func (s *Redis) Stop() error {
	if s.conn != nil {
		_ = s.conn.Close()
	}
	return errors.Join(end(s.Process), os.RemoveAll(s.sockets))
}

// AppendCommand appends a command, whose words may hold any bytes.
func AppendCommand(dst []byte, words ...string) []byte {
	dst = append(dst, '*')
	dst = strconv.AppendInt(dst, int64(len(words)), 10)
	for _, word := range words {
		dst = append(dst, "\r\n$"...)
		dst = strconv.AppendInt(dst, int64(len(word)), 10)
		dst = append(append(dst, "\r\n"...), word...)
	}
	return append(dst, "\r\n"...)
}
