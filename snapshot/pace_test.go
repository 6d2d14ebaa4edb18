package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
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
		{0.5, slice, slice, time.Hour},
		{0.5, slice - 1, 0, time.Hour},
		{0, time.Second, 0, time.Hour},
		{1, time.Second, 0, time.Hour},
		{2, time.Second, 0, time.Hour},
		{-1, time.Second, 0, time.Hour},
		{0.1, time.Minute, 900 * time.Millisecond, time.Hour}, // the disk stalled
		{0.001, time.Minute, 0, time.Second},
	} {
		bubbletest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
			defer cancel()
			p := newPacer(steady(tt.share))
			for range 2 { // the rest itself is no work
				time.Sleep(tt.work)
				began := time.Now()
				err := p.rest(ctx)
				ledgertest.Equal(t, errors.Is(err, context.DeadlineExceeded), tt.limit < tt.work, "%+v: whether the context ends the rest: %v", tt, err)
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

// TestWorkIsRestedForOnce lets a part take long: the meta, which is written after it, was no work.
func TestWorkIsRestedForOnce(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		st := testState(20, 0, 1, 0)
		parts := st.parts(1)
		accounts := parts[0].Accounts
		parts[0].Accounts = func(visit func(*ledger.Account) error) error {
			time.Sleep(longestWork)
			return accounts(visit)
		}
		began := time.Now()
		_, err := openTestStore(t, vfstest.NewMemory()).Write(t.Context(), st.meta, parts, st.blocks, steady(0.5))
		must(t, err)
		ledgertest.Equal(t, time.Since(began), 2*longestWork, "the work and the rest for it")
	})
}

// TestWriterRestsWithinAChunk lets each account take a while to come by. All of them are one chunk.
func TestWriterRestsWithinAChunk(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		st := testState(20, 0, 2000, 0)
		parts := st.parts(1)
		parts[0].Accounts = func(visit func(*ledger.Account) error) error {
			return visitAll(st.accounts)(func(a *ledger.Account) error {
				time.Sleep(slice / 20)
				return visit(a)
			})
		}
		began, rested, longest := time.Now(), time.Now(), time.Duration(0)
		pace := Pace{Share: func() float64 {
			longest, rested = max(longest, time.Since(rested)), time.Now()
			return 0.5
		}}
		s := openTestStore(t, vfstest.NewMemory())
		_, err := s.Write(t.Context(), st.meta, parts, st.blocks, pace)
		must(t, err)
		if took := time.Since(began); longest > took/3 || len(newest(t, s).state.of(accountChunk)) != 1 {
			t.Errorf("it worked %v of %v without a rest, want less than a third", longest, took)
		}
	})
}

// TestOlderFilesAreReadAtThePaceGiven lets each read of a history file take a while, which is work:
// a new process that reads them back has to rest three times as long.
func TestOlderFilesAreReadAtThePaceGiven(t *testing.T) {
	const read = 10 * time.Millisecond
	for name, call := range map[string]func(*testing.T, *Store, Pace) error{
		"Prune": func(t *testing.T, s *Store, pace Pace) error {
			_, err := s.Prune(t.Context(), 1, pace)
			return err
		},
		"Write": func(t *testing.T, s *Store, pace Pace) error {
			next := testState(40, 0, 10, 2)
			_, err := s.Write(t.Context(), next.meta, next.parts(1), next.blocks, pace)
			return err
		},
	} {
		bubbletest.Test(t, func(t *testing.T) {
			memory := vfstest.NewMemory()
			write(t, openTestStore(t, memory), testState(20, 0, 10, 2))
			took := func(pace Pace) time.Duration {
				disk := vfstest.NewFaulty(memory.Clone(), vfstest.Plan{Before: func(c vfstest.Call) {
					if c.Kind == vfstest.KindReadAt && strings.HasSuffix(c.Name, historySuffix) {
						time.Sleep(read)
					}
				}})
				began := time.Now()
				must(t, call(t, openTestStore(t, disk), pace))
				return time.Since(began)
			}
			if whole, paced := took(Pace{}), took(steady(0.25)); paced < whole+3*read {
				t.Errorf("%s took %v at a quarter of a core, %v at a whole one", name, paced, whole)
			}
		})
	}
}
