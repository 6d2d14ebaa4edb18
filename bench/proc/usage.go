package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what the kernel has counted of a process.
type Usage struct {
	User, System time.Duration // of all threads since the start, ended ones included
	RSSBytes     int64         // what is in memory now
	FDs, Threads int           // open now
}

// CPU returns the time on a processor, whoever's code it was.
func (u *Usage) CPU() time.Duration { return u.User + u.System }

// Usage returns what the server has used.
func (s *Server) Usage() (Usage, error) { return UsageOf(s.Pid()) }

// tick is the unit of times in /proc, on every architecture that Go runs on.
const tick = time.Second / 100

// UsageOf returns what a process has used. Times come in steps of 10 ms.
func UsageOf(pid int) (u Usage, err error) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return u, fmt.Errorf("cannot read the usage of process %d: %w", pid, err)
	}
	// The name of the program stands in parentheses and may hold anything; behind it come
	// fields from the third on (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime, threads = 14 - 3, 15 - 3, 20 - 3
	if len(fields) <= threads {
		return u, fmt.Errorf("cannot read the usage of process %d: its stat has %d fields", pid, len(fields))
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	if u.Threads, err = strconv.Atoi(fields[threads]); err != nil || err1 != nil || err2 != nil {
		return u, fmt.Errorf("cannot read the usage of process %d: its stat holds %q", pid, stat)
	}
	u.User, u.System = time.Duration(user)*tick, time.Duration(system)*tick
	if u.RSSBytes, err = residentBytes(dir); err != nil {
		return u, fmt.Errorf("cannot read the memory of process %d: %w", pid, err)
	}
	open, err := os.ReadDir(dir + "fd")
	if err != nil {
		return u, fmt.Errorf("cannot read the files of process %d: %w", pid, err)
	}
	u.FDs = len(open)
	return u, nil
}

// residentBytes returns what smaps_rollup says, which is exact: statm lags by a few pages a processor.
func residentBytes(dir string) (int64, error) {
	rollup, err := os.ReadFile(dir + "smaps_rollup")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(rollup), "\nRss:")
	var kib int64
	_, err = fmt.Sscan(rest, &kib)
	return kib << 10, err
}
