package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

const mega = 1 << 20

// A heap may grow by 32 MiB, by an eighth, or by what the collector has to look at of it, but never by more than its size.
func TestHeadroomShrinksAsTheHeapGrows(t *testing.T) {
	for _, tt := range []struct {
		live, garbage, looked, roots uint64
		want                         int
	}{
		{0, 0, 0, 0, 100}, {32 * mega, 0, 0, 0, 100}, {64 * mega, 0, 0, 0, 50}, {4096 * mega, 0, 0, 0, 12},
		{4096 * mega, 0, 2048 * mega, 0, 50}, {4096 * mega, 0, 5000 * mega, 0, 100}, {50 * mega, 0, 50 * mega, 50 * mega, 50},
		// Garbage makes no room for more garbage.
		{4096 * mega, 1024 * mega, 2560 * mega, 0, 50}, {4096 * mega, 4096 * mega, 4096 * mega, 0, 50}, {0, 4096 * mega, 2048 * mega, mega, 100},
	} {
		ledgertest.Equal(t, headroom(tt.live, tt.live+tt.garbage, tt.looked, tt.roots), tt.want, "headroom of %+v", tt)
	}
}

// Pieces that the collector marks without looking into them, such as the data of accounts, make room for what that is worth.
func TestObjectsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pieces := make([]*[40]byte, 4*mega)
		for i := range pieces {
			pieces[i] = new([40]byte)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		keeping.Go(func() { keepHeadroom(ctx) })
		runtime.GC()
		time.Sleep(2 * headroomEvery)
		synctest.Wait()
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		runtime.KeepAlive(pieces)
		cancel()
		keeping.Wait()
		// They take 48 bytes each, of which the list's 8 are looked at.
		if percent < 90 {
			t.Errorf("%d percent, want 100 of %d pieces", percent, len(pieces))
		}
	})
}

// What a burst has left is collected once, after five quiet seconds, where it is worth it.
func TestLeftoversAreCollectedOnceAfterABurst(t *testing.T) {
	began := time.Now()
	var q lull
	allocated := uint64(0)
	for i, step := range []struct {
		after                    time.Duration
		allocates, live, objects uint64
		want                     bool
	}{
		{0, 500 * mega, 10 * mega, 100 * mega, false},
		{4 * time.Second, quietBytes, 10 * mega, 100 * mega, false},
		{5 * time.Second, 0, 10 * mega, 18 * mega, false}, // too little is left over
		{5 * time.Second, 0, 10 * mega, 19 * mega, true},
		{6 * time.Second, quietBytes, 10 * mega, 100 * mega, false}, // no burst since
		{60 * time.Second, quietBytes, 10 * mega, 100 * mega, false},
		{61 * time.Second, quietBytes + 1, 10 * mega, 100 * mega, false}, // one
		{65 * time.Second, quietBytes, 10 * mega, 100 * mega, false},
		{66 * time.Second, 0, 800 * mega, 899 * mega, false},
		{66 * time.Second, 0, 800 * mega, 901 * mega, true},
		// Whoever allocates steadily is not interrupted.
		{100 * time.Second, quietBytes + 1, 10 * mega, 100 * mega, false},
		{105 * time.Second, quietBytes + 1, 10 * mega, 200 * mega, false},
		{110 * time.Second, quietBytes + 1, 10 * mega, 300 * mega, false},
	} {
		allocated += step.allocates
		ledgertest.Equal(t, q.leaves(began.Add(step.after), allocated, step.live, step.objects), step.want, "step %d: %+v", i, step)
	}
}

// What a burst has left is given back to the system, also where a collection has freed it already.
func TestFreedMemoryIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		keeping.Go(func() { keepHeadroom(ctx) })
		synctest.Wait()
		burst := make([]byte, 256<<20)
		clear(burst)
		time.Sleep(2 * headroomEvery)
		runtime.KeepAlive(burst)
		runtime.GC()
		time.Sleep(2*quietFor + headroomEvery)
		free := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(free)
		if n := free[0].Value.Uint64(); n > smallHeadroom {
			t.Errorf("%d MiB are free and not given back", n>>20)
		}
		cancel()
		keeping.Wait()
	})
}

func TestNodeHasOneProcessorMoreThanCores(t *testing.T) {
	for name, tt := range map[string]struct {
		under []string
		want  int
	}{
		"by default":           {nil, addProcessor() + 1},
		"as an operator wants": {[]string{"/usr/bin/env", "GOMAXPROCS=2"}, 2},
	} {
		v := launchUnder(t, tt.under, "--data-dir", t.TempDir(), "--source", "none").ready()
		ledgertest.Equal(t, v.metric("go_gomaxprocs"), float64(tt.want), "%s: the processors", name)
	}
}
