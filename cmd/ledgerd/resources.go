package main

import (
	"cmp"
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"ledgerd/httpd/budget"
	"ledgerd/httpd/wire"
)

const (
	leastMemoryLimit = 32 << 20 // that may be asked for: an empty node takes as much
	// cgroupPercent is the part of a cgroup's memory that the heap may take: the rest is for the files that are mapped and for the kernel's
	// buffers of sockets.
	cgroupPercent = 90
	// clientShare is the part of the limit, one in so many, that may wait for clients; the collector needs as much again.
	clientShare = 4
	// followShare is the part of the limit, one in so many, that each ring of frames and each history of recent emissions may take. There are
	// twelve: of each level the frames in three forms, and a history.
	followShare = 48
	// connShare is the part of the limit, one in so many, that connections may take, each of them connBytes, or secureConnBytes with TLS: what one that has begun
	// a long request was measured to take is 23 and 45 KiB, and one that has begun a long handshake takes 31 KiB.
	connShare, connBytes, secureConnBytes = 4, 32 << 10, 48 << 10
)

// limitMemory has the garbage collector work harder rather than let memory grow above a limit: the one that is asked for, or else most
// of what the cgroup allows; a person's GOMEMLIMIT wins over both. It returns the limit, math.MaxInt64 without one.
func limitMemory(asked size, log *slog.Logger) (limit int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		if asked != 0 {
			log.Warn("GOMEMLIMIT is set: --memory-limit is not looked at")
		}
		return debug.SetMemoryLimit(-1)
	}
	limit = int64(asked)
	if limit == 0 {
		allowed, err := memlimit.FromCgroup() // an error says that there is none
		if err != nil || allowed == 0 {
			return math.MaxInt64
		}
		limit = int64(allowed / 100 * cgroupPercent)
	}
	log.Info("memory is limited", "bytes", limit)
	debug.SetMemoryLimit(limit)
	return limit
}

// clientMemory returns the budget of what waits for clients: what a flag says, or else a part of the limit.
func clientMemory(asked size, limit int64) *budget.Budget {
	return budget.New(cmp.Or(int64(asked), min(budget.DefaultBytes, max(limit/clientShare, 1<<20))))
}

// mostConns returns the cap of all connections: what a flag says, or else how many a part of the limit is enough for; 0 without a limit.
func mostConns(asked int, limit int64, encrypted bool) int {
	if asked != 0 || limit == math.MaxInt64 {
		return asked
	}
	each := int64(connBytes)
	if encrypted {
		each = secureConnBytes
	}
	return int(min(max(limit/connShare/each, 64), int64(wire.ConnsWithinFileLimit())))
}

// followBytes returns how much of a stream is kept for those who follow it, 0 for the usual.
func followBytes(limit int64) int {
	if limit == math.MaxInt64 {
		return 0
	}
	return int(max(limit/followShare, 1<<20))
}

const (
	// headroomEvery is how often the heap is looked at: it takes longer than that to grow much.
	headroomEvery = time.Second
	// smallHeadroom is what a collection may always leave room for.
	smallHeadroom = 32 << 20
	// headroomShare is the part of the heap that a large one gets besides.
	headroomShare = 8
	// objectBytes is how much of the heap the collector looks at in the time that it takes to mark an object: a line of memory, which it waits for.
	objectBytes = 64
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
// of which each piece of account data is an object that it marks,
// and for little of the rest: not for stacks either, which are most of what idle connections
// take. The setting is the whole process's.
//
// The collector runs when the heap has grown, so what a burst has left, such as that of ten
// thousand connections made at once, stays until the next one. It is given back to the system
// once nothing has happened for a while. Only then: it keeps the processors busy for tens of
// milliseconds, in which answers wait, and while blocks come the collector runs by itself.
func keepHeadroom(ctx context.Context) {
	debug.SetGCPercent(100)
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"},
		{Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, // and not given back to the system
		{Name: "/gc/heap/objects:objects"},
	}
	read := func(i int) uint64 { return samples[i].Value.Uint64() }
	tick := time.NewTicker(headroomEvery)
	defer tick.Stop()
	set := 100
	var calm lull
	for {
		metrics.Read(samples)
		// Each change stops the world for a moment.
		if now := headroom(read(0), read(5), read(1)+objectBytes*read(7), read(2)+read(3)); now < set*15/16 || now > set*17/16 {
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

// addProcessor lets one more goroutine run at once than there are cores, unless GOMAXPROCS in the environment says how many, and returns
// the cores. It does so once in a process.
//
// A goroutine runs on a thread that holds one of the scheduler's processors (Ps). The thread keeps it while it waits in fdatasync, until the
// runtime's monitor looks, up to 10 ms later, and while the kernel has another program run in its place, for a slice of 4 ms. Meanwhile
// nobody runs the goroutines in that P's queue. With as many Ps as cores, each such moment stops a share of all answers; with one more, the
// kernel has a thread of the node to run instead.
var addProcessor = sync.OnceValue(func() (cores int) {
	cores = runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(cores + 1)
	}
	return cores
})
