package wal

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOpenEndsWhenItIsTold by an error of visit or by its context, and tells how far it is until then.
func TestOpenEndsWhenItIsTold(t *testing.T) {
	const commits, enough = 30, 5
	disk, stop := recorded(t, script(commits, 2), 8<<10, true), errors.New("enough")
	for _, want := range []error{stop, context.Canceled, nil} {
		ctx, cancel := context.WithCancel(t.Context())
		visits, reads, total := 0, []int64{0}, int64(0)
		c := Config{FS: disk, Dir: testDir, OnRead: func(read, of int64) {
			if read < reads[len(reads)-1] || read > of || total != 0 && of != total {
				t.Errorf("progress %d of %d after %v of %d", read, of, reads, total)
			}
			reads, total = append(reads, read), of
		}}
		_, err := Open(ctx, c, 0, func([]Entry) error {
			if visits++; visits == enough && want == stop {
				return stop
			} else if visits == enough && want != nil {
				cancel()
			}
			return nil
		})
		cancel()
		all := visits == commits && len(reads) == commits+2 && reads[commits+1] == total // and before the first, and at the end
		if !errors.Is(err, want) || want == stop && visits != enough || want == nil && !all {
			t.Errorf("Open = %v after %d visits, want %v; progress %v of %d", err, visits, want, reads, total)
		}
	}
}
