package bench

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/perf/benchfmt"
)

// Config describes a run: what figures depend on most, and which ledgerd was loaded. Lines of it stand in front of the records.
func (r *Run) Config(command string, begun time.Time) (config []benchfmt.Config) {
	commit, changes := revision(r.Ledgerd)
	for _, line := range [][2]string{
		{"goos", runtime.GOOS}, {"goarch", runtime.GOARCH}, {"go", runtime.Version()},
		{"cpu", field("/proc/cpuinfo", "model name")}, {"cores", fmt.Sprint(runtime.NumCPU())}, {"memory", field("/proc/meminfo", "MemTotal")},
		{"kernel", read("/proc/sys/kernel/osrelease")}, {"commit", commit}, {"changes", changes}, {"begun", begun.UTC().Format("2006-01-02 15:04 MST")},
		{"command", command}, {"rounds", fmt.Sprint(r.Rounds)}, {"duration", r.Duration.String()}, {"scale", fmt.Sprint(r.Scale)},
	} {
		if line[1] != "" {
			config = append(config, benchfmt.Config{Key: line[0], Value: []byte(line[1]), File: true})
		}
	}
	return config
}

// revision returns the commit that a program was built from and whether there were changes, as far as its build noted that.
func revision(program string) (commit, changes string) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			changes = map[string]string{"true": "yes", "false": "no"}[s.Value]
		}
	}
	return commit, changes
}

// read returns what a file of the kernel says; "" if it cannot be read.
func read(file string) string {
	content, _ := os.ReadFile(file)
	return strings.TrimSpace(string(content))
}

// field returns the first value of a name in a file of lines such as `name : value`.
func field(file, name string) string {
	for line := range strings.Lines(read(file)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
