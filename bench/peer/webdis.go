package peer

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"ledgerd/bench/load"
	"ledgerd/bench/proc"
)

// startWebdis starts Redis behind HTTP. It holds the records by key, in JSON.
func startWebdis(ctx context.Context, c *Config, name string, s *Server) error {
	program, err := proc.Find(name, "")
	if err != nil {
		return err
	}
	dir, err := s.tempDir(c, "redis")
	if err != nil {
		return err
	}
	redis, err := StartRedis(ctx, dir)
	if err != nil {
		return err
	}
	s.atStop(redis.Stop)
	if err := fillJSON(redis, c.Accounts); err != nil {
		return err
	}
	s.pids = []int{redis.Pid()}
	s.Version = "webdis over " + redis.Version // it does not say its own
	s.request = func(key string) []byte {      // the value as it is, without JSON around it
		return load.Get(s.Address.String(), "/GET/"+key+".txt", nil)
	}
	return s.startProgram(ctx, c, []string{program}, nil, func(dir string) ([]string, error) {
		config, err := json.Marshal(map[string]any{
			"redis_host": socketOf(redis.Pid()),
			"http_host":  s.Address.Addr(), "http_port": s.Address.Port(), "threads": runtime.NumCPU(),
			"daemonize": false, "verbosity": 0, "logfile": filepath.Join(dir, "webdis.log"),
		})
		file := filepath.Join(dir, "webdis.json")
		return []string{file}, errors.Join(err, os.WriteFile(file, config, 0o600))
	})
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
