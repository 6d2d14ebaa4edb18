package peer

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// redis starts a server, or skips the test where there is none.
func redis(t *testing.T, dir string, options ...string) *Redis {
	t.Helper()
	s, err := StartRedis(t.Context(), dir, options...)
	if absent := (*AbsentError)(nil); errors.As(err, &absent) {
		t.Skip(absent)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRedisHasWhatWasPiped(t *testing.T) {
	const keys = 5000
	for name, options := range map[string][]string{"snapshot": nil, "log": {"--appendonly", "yes"}} {
		dir := t.TempDir()
		s := redis(t, dir, options...)
		next := 0
		err := s.Pipe(func(dst []byte) ([]byte, int) {
			from := next
			for ; next < min(from+300, keys); next++ {
				dst = AppendCommand(dst, "SET", strconv.Itoa(next), string([]byte{0, 0x0d, 0x0a, byte(next)}))
			}
			return dst, next - from
		})
		if err != nil {
			t.Fatal(err)
		}
		if options == nil {
			if _, err := s.Do("SAVE"); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Stop(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s = redis(t, dir, options...)
		if size, err := s.Do("DBSIZE"); err != nil || size != ":5000" {
			t.Errorf("%s: the server holds %q after a restart, %v", name, size, err)
		}
		if got, err := s.Do("GET", "4097"); err != nil || got != "\x00\r\n\x01" {
			t.Errorf("%s: 4097 is %q, %v", name, got, err)
		}
		if err := s.Stop(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRedisRefusalsAreErrors(t *testing.T) {
	s := redis(t, t.TempDir())
	t.Cleanup(func() { _ = s.Stop() })
	if _, err := s.Do("NOSUCH"); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("an unknown command: %v", err)
	}
	batches := 0
	err := s.Pipe(func(dst []byte) ([]byte, int) {
		if batches++; batches == 1_000_000 {
			return dst, 0
		}
		return AppendCommand(dst, "NOSUCH"), 1
	})
	if err == nil || batches == 1_000_000 {
		t.Errorf("a pipe of unknown commands went on for %d, %v", batches, err)
	}
}

func TestRedisThatIsAbsentIsSaidSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := StartRedis(t.Context(), t.TempDir())
	if absent := (*AbsentError)(nil); !errors.As(err, &absent) || !strings.Contains(absent.How, "Debian package redis-server") {
		t.Errorf("err = %v", err)
	}
}
