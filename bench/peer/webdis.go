package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"ledgerd/bench/load"
)

// redisGetOf returns what starts a server of that program which holds the records by key, in JSON,
// and listens on a port.
func redisGetOf(program string) func(ctx context.Context, c *RESTConfig) (*RESTServer, error) {
	return func(ctx context.Context, c *RESTConfig) (*RESTServer, error) { return startRedisGet(ctx, c, program) }
}

func startRedisGet(ctx context.Context, c *RESTConfig, program string) (*RESTServer, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, "redis-")
	if err != nil {
		return nil, err
	}
	// Without protected mode it also serves clients that come from loopback addresses other than 127.0.0.1.
	redis, err := startRedis(ctx, program, dir, "--bind", "127.0.0.1", "--port", strconv.Itoa(int(address.Port())), "--maxclients", "12000",
		"--protected-mode", "no")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &RESTServer{
		Address: address, Redis: true, Version: redis.Version(), pids: []int{redis.Pid()},
		request: func(dst []byte, key string) []byte { return AppendCommand(dst, "GET", key) },
		stop:    func() error { return errors.Join(redis.Stop(), os.RemoveAll(dir)) },
	}
	if err := fillJSON(redis, &c.Records); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// fillJSON puts all records in.
func fillJSON(redis *Redis, records *Records) error {
	i := 0
	var fault error
	err := redis.Pipe(func(dst []byte) ([]byte, int) {
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
	return nil
}

// startWebdis starts Redis behind HTTP.
func startWebdis(ctx context.Context, c *RESTConfig) (*RESTServer, error) {
	path, err := find("webdis")
	if err != nil {
		return nil, err
	}
	redis, err := startRedisGet(ctx, c, redisProgram)
	if err != nil {
		return nil, err
	}
	s, err := startProgram(ctx, c, "webdis", func(dir string, address netip.AddrPort) ([]string, error) {
		config, err := json.Marshal(map[string]any{
			"redis_host": "127.0.0.1", "redis_port": redis.Address.Port(),
			"http_host": "127.0.0.1", "http_port": address.Port(), "threads": runtime.NumCPU(),
			"daemonize": false, "verbosity": 0, "logfile": filepath.Join(dir, "webdis.log"),
		})
		file := filepath.Join(dir, "webdis.json")
		return []string{path, file}, errors.Join(err, os.WriteFile(file, config, 0o600))
	})
	if err != nil {
		return nil, errors.Join(err, redis.Stop())
	}
	s.Version = "webdis over " + redis.Version // it does not say its own
	s.pids = append(s.pids, redis.pids...)
	s.request = func(dst []byte, key string) []byte { // the value as it is, without JSON around it
		return load.AppendGet(dst, s.Address.String(), "/GET/"+key+".txt", load.AnyCoding)
	}
	stop := s.stop
	s.stop = func() error { return errors.Join(stop(), redis.Stop()) }
	return s, nil
}
