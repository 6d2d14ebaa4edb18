package main

import (
	"log/slog"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// cgroupPercent is the part of a cgroup's memory that the heap may take: the rest is for the files that are mapped and for the kernel's
// buffers of sockets.
const cgroupPercent = 90

// limitMemory has the garbage collector work harder rather than let memory grow above a limit: the one that is asked for, or else most
// of what the cgroup allows; a person's GOMEMLIMIT wins over both. It returns what takes that back.
func limitMemory(asked size, log *slog.Logger) (restore func()) {
	limit := int64(asked)
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	if limit == 0 {
		allowed, err := memlimit.FromCgroup() // an error says that there is none
		if err != nil || allowed == 0 {
			return func() {}
		}
		limit = int64(allowed / 100 * cgroupPercent)
	}
	log.Info("memory is limited", "bytes", limit)
	before := debug.SetMemoryLimit(limit)
	return func() { debug.SetMemoryLimit(before) }
}
