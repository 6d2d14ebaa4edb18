package peer

import (
	"strings"
	"testing"
)

// That Redis holds what was piped, after a restart too, the scenarios check.
func TestRedisRefusalsAreErrors(t *testing.T) {
	s, err := StartRedis(t.Context(), t.TempDir())
	present(t, err)
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
