package giveway

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"
)

// With one processor everything that runs while the shard passes ran because it made way.
func TestWorkerLetsTheNetworkIn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var way Worker
	way.Open()
	defer way.Close()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	came := make(chan int, 1) // has room: who was served does not wait
	total, missed := 0, 0
	for range 200 {
		go func() {
			var b [16]byte
			n, _ := in.Read(b[:])
			came <- n
		}()
		for range 3 { // now it waits for the network
			runtime.Gosched()
		}
		if _, err := out.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		way.Question()
		way.Pass()
		total++
		select {
		case <-came:
		default:
			missed++
			<-came
		}
	}
	// The runtime's own watchman may look at the network in between and take the turn.
	if missed > total/10 {
		t.Errorf("%d of %d readers were not served before the shard went on", missed, total)
	}
}

func TestMakingWayTakesNothingWhileNobodyAsks(t *testing.T) {
	var way Worker
	way.Open()
	defer way.Close()
	way.Question()
	for range attentionSlices {
		way.Pass()
	}
	if way.attention != 0 {
		t.Fatalf("the shard still expects questions after %d slices without one", attentionSlices)
	}
	way.sent = false
	way.Pass()
	if way.sent {
		t.Error("the network was looked at though nobody asks")
	}
}

// Two threads share one processor. Neither ever waits for the other.
func TestProcessorIsOfferedToOtherThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const offers = 2000
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
		for range offers {
			before := turns.Load()
			yieldProcessor()
			if turns.Load() > before {
				taken++
			}
		}
		// It would be a handful of times, each after a tick of the kernel's clock.
		if taken < offers/20 {
			t.Errorf("of %d times that a thread offered its processor another one took it %d times", offers, taken)
		}
	})
	threads.Wait()
}

// shareProcessor locks the goroutine to its thread, and that to the first processor there is. The thread
// ends with the goroutine.
func shareProcessor(t *testing.T) {
	runtime.LockOSThread()
	var set [128]byte
	for _, call := range []uintptr{syscall.SYS_SCHED_GETAFFINITY, syscall.SYS_SCHED_SETAFFINITY} {
		if _, _, errno := syscall.RawSyscall(call, 0, unsafe.Sizeof(set), uintptr(unsafe.Pointer(&set))); errno != 0 {
			t.Error(errno)
			return
		}
		first := slices.IndexFunc(set[:], func(b byte) bool { return b != 0 })
		bit := set[first] & -set[first]
		set = [128]byte{}
		set[first] = bit
	}
}
