package main

import (
	"cmp"
	"log/slog"
	"math"
	"os"
	"runtime/debug"

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
// of what the cgroup allows; a person's GOMEMLIMIT wins over both. It returns the limit, math.MaxInt64 without one, and what takes it back.
func limitMemory(asked size, log *slog.Logger) (limit int64, restore func()) {
	before := debug.SetMemoryLimit(-1)
	if os.Getenv("GOMEMLIMIT") != "" {
		if asked != 0 {
			log.Warn("GOMEMLIMIT is set: --memory-limit is not looked at")
		}
		return before, func() {}
	}
	limit = int64(asked)
	if limit == 0 {
		allowed, err := memlimit.FromCgroup() // an error says that there is none
		if err != nil || allowed == 0 {
			return before, func() {}
		}
		limit = int64(allowed / 100 * cgroupPercent)
	}
	log.Info("memory is limited", "bytes", limit)
	debug.SetMemoryLimit(limit)
	return limit, func() { debug.SetMemoryLimit(before) }
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
