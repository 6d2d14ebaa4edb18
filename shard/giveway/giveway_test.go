package giveway

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"ledgerd/engine/ledger/ledgertest"
)

// TestWorkerLetsTheNetworkInAfterAQuestion counts readers that are served before the worker goes on. With one processor each of
// them ran because the worker yielded. The runtime polls the network by itself now and then, so only a half is asked for.
func TestWorkerLetsTheNetworkInAfterAQuestion(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds = 200
	var way Worker
	way.Open()
	defer way.Close()
	in, out, err := os.Pipe()
	ledgertest.Must(t, err)
	defer in.Close()
	defer out.Close()
	came := make(chan error, 1)
	served := func(question bool) (n int) {
		for range rounds {
			go func() {
				_, err := in.Read(make([]byte, 16))
				came <- err
			}()
			for range 3 { // now it waits for the network
				runtime.Gosched()
			}
			_, err := out.Write([]byte{1})
			ledgertest.Must(t, err)
			if question {
				way.Question()
			}
			way.Pass()
			n += len(came)
			ledgertest.Must(t, <-came)
		}
		return n
	}
	if n := served(true); n < rounds/2 {
		t.Errorf("%d of %d readers were served before the worker went on", n, rounds)
	}
	for range attentionSlices {
		way.Pass()
	}
	if n := served(false); n > rounds/2 {
		t.Errorf("%d of %d readers were served though nobody asked for a long time", n, rounds)
	}
}

// TestProcessorIsOfferedToOtherThreads has two threads share one processor. Neither ever waits for the other. Without the offer
// the kernel switches at a tick of its clock: a handful of times.
func TestProcessorIsOfferedToOtherThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const offers, enough = 5_000, 50
	var turns atomic.Int64
	var over atomic.Bool
	var threads sync.WaitGroup
	threads.Go(func() {
		shareProcessor(t)
		for !over.Load() {
			turns.Add(1)
			yieldProcessor()
		}
	})
	threads.Go(func() {
		defer over.Store(true)
		shareProcessor(t)
		for turns.Load() == 0 { // until the other one is there
			runtime.Gosched()
		}
		taken := 0
		for n := 0; taken < enough; n++ {
			if n == offers {
				t.Errorf("of %d times that a thread offered its processor another one took it %d times", offers, taken)
				return
			}
			before := turns.Load()
			yieldProcessor()
			if turns.Load() > before {
				taken++
			}
		}
	})
	threads.Wait()
}

// shareProcessor locks the goroutine to its thread, and that to the first processor there is. The thread
// ends with the goroutine.
func shareProcessor(t *testing.T) {
	runtime.LockOSThread()
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Error(err)
		return
	}
	n := 0
	for !all.IsSet(n) {
		n++
	}
	first.Set(n)
	ledgertest.ErrorIs(t, unix.SchedSetaffinity(0, &first), nil, "binding the thread")
}
