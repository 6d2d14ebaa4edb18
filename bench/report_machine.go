package bench

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Machine is what figures depend on most.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"` // that this process may use
	MemoryBytes int64  `json:"memory_bytes"`
	Kernel      string `json:"kernel"`
	Go          string `json:"go"`
}

// ThisMachine describes the machine this runs on, as far as it lets itself be asked.
func ThisMachine() Machine {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			return ""
		}
		return string(b)
	}
	memory, _, _ := strings.Cut(field(read("/proc/meminfo"), "MemTotal"), " ")
	kib, err := strconv.ParseInt(memory, 10, 64)
	if err != nil {
		kib = 0
	}
	return Machine{
		CPU:         field(read("/proc/cpuinfo"), "model name"),
		Cores:       runtime.NumCPU(),
		MemoryBytes: kib << 10,
		Kernel:      strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		Go:          runtime.Version(),
	}
}

// field returns the first value of a name in lines of `name : value`.
func field(lines, name string) string {
	for line := range strings.Lines(lines) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String returns the machine in one line.
func (m Machine) String() string {
	name := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return s
	}
	return fmt.Sprintf("%s, cores: %d, memory: %.1f GiB, kernel %s, %s",
		name(m.CPU), m.Cores, float64(m.MemoryBytes)/(1<<30), name(m.Kernel), m.Go)
}
