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

	"github.com/gomodule/redigo/redis"

	"ledgerd/bench/load"
)

// startRedisGet starts a server of the program that the peer is named after. It holds the records by key, in JSON.
func startRedisGet(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	program := p.Name + "-server"
	s, err := startProgram(ctx, c, program, func(dir string, address netip.AddrPort) ([]string, error) {
		// Without protected mode it also serves clients that come from loopback addresses other than 127.0.0.1.
		return append(redisFlags(dir), "--bind", "127.0.0.1", "--port", strconv.Itoa(int(address.Port())), "--maxclients", "12000",
			"--protected-mode", "no"), nil
	})
	if err != nil {
		return nil, err
	}
	s.Frame = load.FrameRedis
	s.request = func(dst []byte, key string) []byte {
		return fmt.Appendf(dst, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key)
	}
	s.Version = versionOf(ctx, program, "--version")
	if err := fillJSON(ctx, s.Address.String(), &c.Records); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot fill it: %w", err), s.Stop())
	}
	return s, nil
}

// fillJSON puts all records in.
func fillJSON(ctx context.Context, address string, records *Records) error {
	conn, err := redis.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	return (&Redis{Conn: conn}).Pipe(func(send func(command string, words ...any) error) error {
		for i := range records.Count {
			r := records.Record(i)
			value, err := json.Marshal(r)
			if err == nil {
				err = send("SET", r.Pubkey, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// startWebdis starts Redis behind HTTP.
func startWebdis(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	var redis *Server
	s, err := startProgram(ctx, c, p.Name, func(dir string, address netip.AddrPort) (_ []string, err error) {
		if redis, err = startRedisGet(ctx, c, &Peer{Name: "redis"}); err != nil {
			return nil, err
		}
		config, err := json.Marshal(map[string]any{
			"redis_host": "127.0.0.1", "redis_port": redis.Address.Port(),
			"http_host": "127.0.0.1", "http_port": address.Port(), "threads": runtime.NumCPU(),
			"daemonize": false, "verbosity": 0, "logfile": filepath.Join(dir, "webdis.log"),
		})
		file := filepath.Join(dir, "webdis.json")
		return []string{file}, errors.Join(err, os.WriteFile(file, config, 0o600))
	})
	if err != nil && redis != nil {
		err = errors.Join(err, redis.Stop())
	}
	if err != nil {
		return nil, err
	}
	s.Version = "webdis over " + redis.Version // it does not say its own
	s.pids, s.stop = append(s.pids, redis.pids...), append(s.stop, redis.stop...)
	s.request = func(dst []byte, key string) []byte { // the value as it is, without JSON around it
		return load.AppendGet(dst, s.Address.String(), "/GET/"+key+".txt", load.AnyCoding)
	}
	return s, nil
}
