package shard

import (
	"os"
	"runtime"
	"testing"
)

// With one processor everything that runs while the shard passes ran because it made way.
func TestShardAtWorkLetsTheNetworkIn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var way giveway
	way.open()
	defer way.close()
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
		way.question()
		way.pass()
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
	var way giveway
	way.open()
	defer way.close()
	way.question()
	for range attentionSlices {
		way.pass()
	}
	if way.attention != 0 {
		t.Fatalf("the shard still expects questions after %d slices without one", attentionSlices)
	}
	way.sent = false
	way.pass()
	if way.sent {
		t.Error("the network was looked at though nobody asks")
	}
}
