package peer

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"ledgerd/bench/load"
	"ledgerd/bench/proc"
)

// startWebdis starts Redis behind HTTP. It holds the records by key, in JSON.
func startWebdis(ctx context.Context, c *Config, p *Peer) (*Server, error) {
	program, err := proc.Find(p.Name, "")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, "redis-")
	if err != nil {
		return nil, err
	}
	redis, err := StartRedis(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop := func() error { return errors.Join(redis.Stop(), os.RemoveAll(dir)) }
	if err := fillJSON(redis, c.Accounts); err != nil {
		return nil, errors.Join(err, stop())
	}
	s, err := startProgram(ctx, c, []string{program}, nil, func(dir string, address netip.AddrPort) ([]string, error) {
		config, err := json.Marshal(map[string]any{
			"redis_host": socketOf(redis.Pid()),
			"http_host":  address.Addr(), "http_port": address.Port(), "threads": runtime.NumCPU(),
			"daemonize": false, "verbosity": 0, "logfile": filepath.Join(dir, "webdis.log"),
		})
		file := filepath.Join(dir, "webdis.json")
		return []string{file}, errors.Join(err, os.WriteFile(file, config, 0o600))
	})
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s.Version = "webdis over " + redis.Version // it does not say its own
	s.pids, s.stop = append(s.pids, redis.Pid()), append(s.stop, stop)
	s.request = func(key string) []byte { // the value as it is, without JSON around it
		return load.Get(s.Address.String(), "/GET/"+key+".txt", nil)
	}
	return s, nil
}

// fillJSON puts all records in.
func fillJSON(redis *Redis, records int) error {
	return redis.Pipe(func(send func(command string, words ...any) error) error {
		for i := range records {
			r := Record(i)
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
