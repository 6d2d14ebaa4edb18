package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
)

// steady is the pace of one share.
func steady(share float64) Pace { return Pace{Share: func() float64 { return share }} }

func TestAPacerRestsForItsShareAfterASlice(t *testing.T) {
	for _, tt := range []struct {
		share      float64
		work, rest time.Duration
		limit      time.Duration // of the context
	}{
		{0.25, 10 * time.Millisecond, 30 * time.Millisecond, time.Hour},
		{0.5, 10 * time.Millisecond, 10 * time.Millisecond, time.Hour},
		{0.5, slice, slice, time.Hour},
		{0.5, slice - 1, 0, time.Hour},
		{0, time.Second, 0, time.Hour},
		{1, time.Second, 0, time.Hour},
		{2, time.Second, 0, time.Hour},
		{-1, time.Second, 0, time.Hour},
		{0.001, time.Minute, 0, time.Second},
	} {
		bubble.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
			defer cancel()
			p := newPacer(steady(tt.share))
			for range 2 { // the rest itself is no work
				time.Sleep(tt.work)
				began := time.Now()
				if err := p.rest(ctx); errors.Is(err, context.DeadlineExceeded) != (tt.limit < tt.work) {
					t.Errorf("%+v: %v", tt, err)
				}
				if rested := time.Since(began); (rested - tt.rest).Abs() > time.Microsecond {
					t.Errorf("%+v: rested %v", tt, rested)
				}
				if tt.rest == 0 {
					p = newPacer(steady(tt.share))
				}
			}
		})
	}
}

// TestWriterRestsWithinAChunk lets each account take a twentieth of a slice to come by. All of them are one
// chunk.
func TestWriterRestsWithinAChunk(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		st := testState(20, 0, 2000, 0)
		parts := st.parts(1)
		all := parts[0].Accounts
		parts[0].Accounts = func(visit func(*ledger.Account) bool) error {
			return all(func(a *ledger.Account) bool {
				time.Sleep(slice / 20)
				return visit(a)
			})
		}
		rests := 0
		pace := Pace{Share: func() float64 { rests++; return 0.5 }}
		if _, err := openTestStore(t, vfstest.NewMemory()).Write(t.Context(), st.meta, parts, st.blocks, pace); err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, a := range st.accounts {
			size += len(codec.AppendAccount(nil, a))
		}
		if size >= chunkBytes || size < 3*pieceBytes {
			t.Fatalf("the accounts take %d bytes, which is not a chunk of several pieces", size)
		}
		if want := size / pieceBytes; rests < want {
			t.Errorf("it rested %d times in %d bytes, want %d", rests, size, want)
		}
	})
}

// TestOlderFilesAreReadAtThePaceGiven lets each read of a history file take a while, which is work:
// a new process that reads them back has to rest three times as long.
func TestOlderFilesAreReadAtThePaceGiven(t *testing.T) {
	const read = 10 * time.Millisecond
	calls := map[string]func(context.Context, *Store, Pace) error{
		"Prune": func(ctx context.Context, s *Store, pace Pace) error {
			_, err := s.Prune(ctx, 1, pace)
			return err
		},
		"Write": func(ctx context.Context, s *Store, pace Pace) error {
			next := testState(40, 0, 10, 2)
			_, err := s.Write(ctx, next.meta, next.parts(1), next.blocks, pace)
			return err
		},
	}
	for name, call := range calls {
		bubble.Test(t, func(t *testing.T) {
			memory := vfstest.NewMemory()
			write(t, openTestStore(t, memory), testState(20, 0, 10, 2))
			took := func(pace Pace) time.Duration {
				disk := vfstest.NewFaulty(memory.Clone(), vfstest.Plan{Before: func(c vfstest.Call) {
					if c.Kind == vfstest.KindReadAt && strings.HasSuffix(c.Name, historySuffix) {
						time.Sleep(read)
					}
				}})
				began := time.Now()
				if err := call(t.Context(), openTestStore(t, disk), pace); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return time.Since(began)
			}
			if whole, paced := took(Pace{}), took(steady(0.25)); paced < whole+3*read {
				t.Errorf("%s took %v at a quarter of a core, %v at a whole one", name, paced, whole)
			}
		})
	}
}
