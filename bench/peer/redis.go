package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"ledgerd/bench/proc"
)

const (
	// redisPatience is how long a server may take to load what its directory holds.
	redisPatience = 10 * time.Minute
	// redisBatch is how many commands are sent before replies are read. As many again are under way meanwhile.
	redisBatch = 1000
)

// Redis is a connection to a redis-server, which one goroutine at a time may use. It keeps data
// instead of telling it: it is the peer of ledgerd's memory and of its durability, and is spoken to over a socket of the file
// system, which is the fastest that it has.
type Redis struct {
	*proc.Process
	redis.Conn
	Version string // what the program says that it is
}

// StartRedis starts a server on a directory, and returns when it has loaded what that holds. It
// takes no snapshot by itself and keeps no log unless the options, which follow, say so. The
// process ends at the latest with ctx. It returns an *proc.AbsentError if there is no such program.
func StartRedis(ctx context.Context, dir string, options ...string) (*Redis, error) {
	program, err := proc.Find("redis-server", "")
	if err != nil {
		return nil, err
	}
	s := &Redis{Version: versionOf(ctx, program, "--version")}
	words := append([]string{program, "--dir", dir, "--save", "", "--loglevel", "warning", "--port", "0", "--unixsocket", "s"}, options...)
	s.Process, err = launch(ctx, proc.Command{Words: words}, redisPatience, func(ctx context.Context, pid int) (err error) {
		if s.Conn == nil { // the path of a socket must be short, which that of the directory need not be
			s.Conn, err = redis.DialContext(ctx, "unix", socketOf(pid))
		}
		if err == nil {
			_, err = s.Do("GET", "")
		}
		return err
	})
	if err != nil && s.Conn != nil {
		_ = s.Close()
	}
	return s, err
}

func socketOf(pid int) string { return fmt.Sprintf("/proc/%d/cwd/s", pid) }

// Pipe has all commands carried out that write sends, and reads their replies meanwhile. It returns when the last is there, or with
// the first error of write or in a reply.
func (s *Redis) Pipe(write func(send func(command string, words ...any) error) error) error {
	unread := 0
	read := func(left int) error {
		err := s.Flush()
		for ; unread > left && err == nil; unread-- {
			_, err = s.Receive()
		}
		return err
	}
	err := write(func(command string, words ...any) error {
		err := s.Send(command, words...)
		if unread++; unread == 2*redisBatch && err == nil {
			err = read(redisBatch)
		}
		return err
	})
	if err != nil {
		return err
	}
	return read(0)
}

// Stop ends the process and waits for it. What no log and no snapshot holds is gone.
func (s *Redis) Stop() error {
	_ = s.Close()
	return end(s.Process)
}
