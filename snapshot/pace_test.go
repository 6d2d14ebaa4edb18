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

func TestPacerRestsForItsShare(t *testing.T) {
	tests := map[float64]time.Duration{0.25: 30 * time.Millisecond, 0.5: 10 * time.Millisecond, 0.1: 90 * time.Millisecond, 0: 0, 1: 0, 2: 0, -1: 0}
	for share, want := range tests {
		bubble.Test(t, func(t *testing.T) {
			p := newPacer(steady(share))
			for range 2 { // the rest itself is no work
				time.Sleep(10 * time.Millisecond) // the work
				began := time.Now()
				if err := p.rest(t.Context()); err != nil {
					t.Errorf("share %v: %v", share, err)
				}
				if rested := time.Since(began); rested < want-time.Microsecond || rested > want+time.Microsecond {
					t.Errorf("share %v: rested %v after 10ms of work, want %v", share, rested, want)
				}
				if want == 0 {
					p = newPacer(steady(share))
				}
			}
		})
	}
}

func TestPacerRestsAfterASliceAtTheEarliest(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPacer(steady(0.5))
		began := time.Now()
		for range 3 { // of work too short to rest after
			time.Sleep(slice * 3 / 10)
			if err := p.rest(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if rested := time.Since(began) - 9*slice/10; rested != 0 {
			t.Errorf("it rested for %v after less than a slice", rested)
		}
		time.Sleep(slice / 10)
		began = time.Now()
		if err := p.rest(t.Context()); err != nil || time.Since(began) != slice {
			t.Errorf("it rested for %v after a slice, want %v; %v", time.Since(began), slice, err)
		}
	})
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

func TestPacerWakesWhenItsContextEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := newPacer(steady(0.001))
		time.Sleep(time.Minute)
		began := time.Now()
		if err := p.rest(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 0 {
			t.Errorf("rest: %v after %v, want %v at once", err, time.Since(began), context.DeadlineExceeded)
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
