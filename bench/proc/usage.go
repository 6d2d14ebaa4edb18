package proc

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is what the kernel has counted of a process.
type Usage struct {
	CPU      time.Duration // on a processor since the start, of all threads, ended ones included
	RSSBytes int64         // what is in memory now
	FDs      int           // open now
}

// UsageOf returns what a process has used.
func UsageOf(pid int) (u Usage, err error) {
	if u.CPU, err = CPU(pid); err != nil {
		return u, err
	}
	// smaps_rollup is exact: statm lags by a few pages a processor.
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err == nil {
		_, rest, _ := strings.Cut(string(rollup), "\nRss:")
		_, err = fmt.Sscan(rest, &u.RSSBytes)
		u.RSSBytes <<= 10
	}
	if err != nil {
		return u, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return u, fmt.Errorf("cannot read the files of process %d: %w", pid, err)
	}
	u.FDs = len(open)
	return u, nil
}

// CPU returns the time that all threads of a process have had on processors, to the nanosecond (clock_getcpuclockid(3)).
func CPU(pid int) (time.Duration, error) {
	const scheduled = 2 // the scheduler's clock, of a process
	var had unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &had); err != nil {
		return 0, fmt.Errorf("cannot read the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(had.Nano()), nil
}
