package wal

import (
	"context"
	"errors"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOpenEndsWhenItIsTold(t *testing.T) {
	disk := recorded(t, script(300, 40), 256<<10, true)
	stop := errors.New("enough")
	ctx, cancel := context.WithCancel(t.Context())
	for visit, want := range map[int]error{5: stop, 1: context.Canceled, 300: nil} {
		visits := 0
		reads, total := []int64{0}, int64(0)
		c := Config{FS: disk, Dir: testDir, OnRead: func(read, of int64) {
			if read < reads[len(reads)-1] || read > of || total != 0 && of != total {
				t.Errorf("progress %d of %d after %v", read, of, reads)
			}
			reads, total = append(reads, read), of
		}}
		_, err := Open(ctx, c, 0, func([]Entry) error {
			switch visits++; {
			case visits == visit && want == stop:
				return stop
			case visits == visit && want != nil:
				cancel()
			}
			return nil
		})
		if !errors.Is(err, want) || want == stop && (err != stop || visits != visit) {
			t.Errorf("Open = %v after %d visits, want %v after %d", err, visits, want, visit)
		}
		if want == nil && (visits != visit || len(reads) < 4 || reads[len(reads)-1] != total) {
			t.Errorf("%d visits, progress %v, want it to end at the total", visits, reads)
		}
		if want == context.Canceled {
			ctx, cancel = context.WithCancel(t.Context())
		}
	}
	cancel()
}
