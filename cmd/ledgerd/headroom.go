package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// headroomEvery is how often the heap is looked at: it takes longer than that to grow much.
	headroomEvery = time.Second
	// smallHeadroom is what a collection may always leave room for.
	smallHeadroom = 32 << 20
	// headroomShare is the part of the heap that a large one gets besides.
	headroomShare = 8
	// quietFor is how long next to nothing was allocated before what was left over is collected.
	quietFor = 5 * time.Second
	// quietBytes is what may be allocated from one look to the next in a quiet time: pings are sent and
	// metrics read while no block comes.
	quietBytes = 1 << 20
)

// keepHeadroom has the garbage collector leave room for what its work is worth, until ctx ends.
//
// By itself it lets the heap grow to twice what is live, since that much work pays for looking at
// all of it. But most of ours are packed accounts, which it need not look into: a collection of
// ten million of them costs little more than one of none, and so much room would only
// double what they take. So there is room for as much as the collector has to look at in the heap,
// and for little of the rest: not for stacks either, which are most of what idle connections
// take. The setting is the whole process's.
//
// The collector runs when the heap has grown, so what a burst has left, such as that of ten
// thousand connections made at once, stays until the next one. It is given back to the system
// once nothing has happened for a while. Only then: it keeps the processors busy for tens of
// milliseconds, in which answers wait, and while blocks come the collector runs by itself.
func keepHeadroom(ctx context.Context) {
	before := debug.SetGCPercent(100)
	defer func() { debug.SetGCPercent(before) }()
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"},
		{Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, // and not given back to the system
	}
	read := func(i int) uint64 { return samples[i].Value.Uint64() }
	tick := time.NewTicker(headroomEvery)
	defer tick.Stop()
	set := 100
	var calm lull
	for {
		metrics.Read(samples)
		// Each change stops the world for a moment.
		if now := headroom(read(0), read(5), read(1), read(2)+read(3)); now < set*15/16 || now > set*17/16 {
			debug.SetGCPercent(now)
			set = now
		}
		if calm.leaves(time.Now(), read(4), read(0), read(5)+read(6)) {
			debug.FreeOSMemory()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// headroom returns the percent of live bytes and of roots that may be garbage. looked is how many of the bytes that are held, live
// ones and garbage, would have to be looked at: the live ones count with their share of it, or garbage would make room for more of it.
// roots, which always are looked at, are stacks and globals.
func headroom(live, held, looked, roots uint64) int {
	if live+roots == 0 {
		return 100
	}
	looked = uint64(float64(looked) * float64(live) / float64(max(held, live, 1)))
	room := max(smallHeadroom, live/headroomShare, looked)
	return int(min(100*room/(live+roots), 100))
}

// lull is a time in which next to nothing is allocated, after one in which much was.
type lull struct {
	allocated uint64 // so much ever
	since     time.Time
	burst     bool // there was one that nothing was collected after
}

// leaves reports whether it has been quiet for quietFor after a burst, and the heap holds so much more than
// what the collector last found live that it is worth to look again: once after each burst. What it holds is objects, and memory
// that the last collection freed: without another one the system gets that back slowly or never.
func (q *lull) leaves(now time.Time, allocated, live, held uint64) bool {
	if allocated-q.allocated > quietBytes {
		q.since, q.burst = now, true
	}
	q.allocated = allocated
	if !q.burst || now.Sub(q.since) < quietFor || held <= live+max(smallHeadroom/4, live/headroomShare) {
		return false
	}
	q.burst = false
	return true
}
