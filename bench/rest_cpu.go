package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/proc"
)

// cpuOf returns the time that processes have had on processors. The scheduler's own count is to
// the nanosecond; where the kernel keeps none it is in steps of 10 ms.
func cpuOf(pids ...int) (sum time.Duration, err error) {
	for _, pid := range pids {
		cpu, ok := scheduled(pid)
		if !ok {
			u, err := proc.UsageOf(pid)
			if err != nil {
				return 0, err
			}
			cpu = u.CPU()
		}
		sum += cpu
	}
	return sum, nil
}

// scheduled adds up what the threads of a process have had. None of those measured here ends
// one while it works.
func scheduled(pid int) (sum time.Duration, ok bool) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, false
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended since
		}
		first, _, _ := strings.Cut(string(text), " ")
		nanoseconds, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, false
		}
		sum += time.Duration(nanoseconds)
	}
	return sum, true
}
