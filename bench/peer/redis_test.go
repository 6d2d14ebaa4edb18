package peer

import (
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// That Redis holds what was piped, after a restart too, the scenarios check.
func TestRedisRefusalsAreErrors(t *testing.T) {
	s, err := StartRedis(t.Context(), t.TempDir())
	present(t, err)
	t.Cleanup(func() { _ = s.Stop() })
	_, err = s.Do("NOSUCH")
	ledgertest.ErrorSays(t, err, "unknown command", "an unknown command")
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
