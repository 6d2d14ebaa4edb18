package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

// webdisProgram is looked for on the PATH.
const webdisProgram = "webdis"

var errNoWebdis = &AbsentError{webdisProgram, "the Debian package webdis has it"}

// redisGet is a redis-server that holds the records by key, and listens on a port.
type redisGet struct {
	*Redis
	dir     string
	address netip.AddrPort
	version string
}

func startRedisGet(ctx context.Context, c *RESTConfig) (RESTServer, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &redisGet{address: address}
	if s.dir, err = os.MkdirTemp(c.Dir, "redis-"); err != nil {
		return nil, err
	}
	// Without protected mode it also serves clients that come from loopback addresses other than 127.0.0.1.
	if s.Redis, err = StartRedis(ctx, s.dir, "--bind", "127.0.0.1", "--port", strconv.Itoa(int(address.Port())), "--maxclients", "12000",
		"--protected-mode", "no"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.fill(&c.Records); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// fill puts all records in, in JSON, and asks the version.
func (s *redisGet) fill(records *Records) error {
	i := 0
	var fault error
	err := s.Pipe(func(dst []byte) ([]byte, int) {
		const batch = 1000
		count := 0
		for ; i < records.Count && count < batch && fault == nil; count++ {
			r := records.Record(i)
			var value []byte
			value, fault = json.Marshal(r)
			dst = AppendCommand(dst, "SET", r.Pubkey, string(value))
			i++
		}
		return dst, count
	})
	if err = errors.Join(err, fault); err != nil {
		return fmt.Errorf("cannot fill redis: %w", err)
	}
	s.version = s.Redis.Version()
	return nil
}

func (s *redisGet) Address() netip.AddrPort { return s.address }
func (s *redisGet) Native() bool            { return true }
func (s *redisGet) Pids() []int             { return []int{s.Pid()} }
func (s *redisGet) Version() string         { return s.version }

// Request implements RESTServer. A connection of Redis ends when its client closes it, so there
// is none for one request.
func (s *redisGet) Request(dst []byte, key string, _ bool) []byte {
	return AppendCommand(dst, "GET", key)
}

func (s *redisGet) Stop() error { return errors.Join(s.Redis.Stop(), os.RemoveAll(s.dir)) }

// webdis is Redis behind HTTP.
type webdis struct {
	*program
	redis RESTServer
}

func startWebdis(ctx context.Context, c *RESTConfig) (RESTServer, error) {
	path, err := find(webdisProgram, "/usr/sbin", errNoWebdis)
	if err != nil {
		return nil, err
	}
	redis, err := startRedisGet(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &webdis{redis: redis}
	if err := s.launch(ctx, path, c.Dir); err != nil {
		return nil, errors.Join(err, redis.Stop())
	}
	return s, nil
}

func (s *webdis) launch(ctx context.Context, path, dir string) (err error) {
	if s.program, err = newProgram(ctx, dir, webdisProgram); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"redis_host": "127.0.0.1", "redis_port": s.redis.Address().Port(),
		"http_host": "127.0.0.1", "http_port": s.address.Port(), "threads": runtime.NumCPU(),
		"daemonize": false, "verbosity": 0, "logfile": filepath.Join(s.dir, "webdis.log"),
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	file := filepath.Join(s.dir, "webdis.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	return s.program.launch(ctx, exec.CommandContext(ctx, path, file))
}

// Request implements RESTServer. The value is asked for as it is, without JSON around it.
func (s *webdis) Request(dst []byte, key string, fresh bool) []byte {
	return Get(dst, s.address.String(), "/GET/"+key+".txt", AnyCoding, fresh)
}

func (s *webdis) Pids() []int { return append(s.program.Pids(), s.redis.Pids()...) }

// Version implements RESTServer. The program does not say its own.
func (s *webdis) Version() string { return webdisProgram + " over " + s.redis.Version() }

func (s *webdis) Stop() error { return errors.Join(s.program.Stop(), s.redis.Stop()) }
