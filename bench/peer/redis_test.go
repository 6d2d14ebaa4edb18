package peer

import (
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
)

// startRedis starts a server, or skips the test where there is none.
func startRedis(t *testing.T, dir string, options ...string) *Redis {
	t.Helper()
	s, err := StartRedis(t.Context(), dir, options...)
	present(t, err)
	return s
}

func TestRedisHasWhatWasPiped(t *testing.T) {
	const keys = 5000
	for name, options := range map[string][]string{"snapshot": nil, "log": {"--appendonly", "yes"}} {
		dir := t.TempDir()
		s := startRedis(t, dir, options...)
		err := s.Pipe(func(send func(command string, words ...any) error) (err error) {
			for i := 0; i < keys && err == nil; i++ {
				err = send("SET", i, []byte{0, 0x0d, 0x0a, byte(i)})
			}
			return err
		})
		must(t, err)
		if options == nil {
			if _, err := s.Do("SAVE"); err != nil {
				t.Fatal(err)
			}
		}
		must(t, s.Stop())
		s = startRedis(t, dir, options...)
		if size, err := redis.Int(s.Do("DBSIZE")); err != nil || size != keys {
			t.Errorf("%s: the server holds %d after a restart, %v", name, size, err)
		}
		if got, err := redis.String(s.Do("GET", 4097)); err != nil || got != "\x00\r\n\x01" {
			t.Errorf("%s: 4097 is %q, %v", name, got, err)
		}
		must(t, s.Stop())
	}
}

func TestRedisRefusalsAreErrors(t *testing.T) {
	s := startRedis(t, t.TempDir())
	t.Cleanup(func() { _ = s.Stop() })
	if _, err := s.Do("NOSUCH"); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("an unknown command: %v", err)
	}
	for _, most := range []int{1, 1_000_000} {
		sent := 0
		err := s.Pipe(func(send func(command string, words ...any) error) (err error) {
			for ; sent < most && err == nil; sent++ {
				err = send("NOSUCH")
			}
			return err
		})
		if err == nil || sent == 1_000_000 {
			t.Errorf("a pipe of unknown commands went on for %d, %v", sent, err)
		}
	}
}
