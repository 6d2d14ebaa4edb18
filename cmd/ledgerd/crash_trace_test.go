package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// traced is a data directory on which system calls of a node fail, or end it, as they are told to.
type traced struct{ *crashRig }

func newTraced(t *testing.T) *traced {
	t.Helper()
	if testing.Short() {
		t.Skip("system calls fail as they do without the race detector, which traced nodes take minutes under: make test")
	}
	t.Parallel()
	needs(t, "strace")
	if err := command("strace", "-f", "-qq", "-o", "/dev/null", "true"); err != nil {
		t.Skipf("this machine does not let a test trace: %v", err)
	}
	return &traced{newCrashRig(t, keptDir(t), crashLedger, "--log-segment-bytes", "128KiB", "--snapshot-interval")}
}

// injected starts a node whose system calls are watched; the trace is written to a file.
func (d *traced) injected(injection, snapshotInterval string) (v *victim, trace string) {
	d.Helper()
	trace = filepath.Join(d.TempDir(), "trace")
	calls := "fdatasync,fsync,pwrite64,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat"
	tracer := []string{"strace", "-f", "-qq", "-y", "-o", trace, "-e", "trace=" + calls, "-e", "inject=" + injection}
	return d.under(tracer, d.source, snapshotInterval), trace
}

// lives has a node be watched until something has happened to it, kills it, and checks that everything seen is on the disk.
func (d *traced) lives(v *victim, until func()) {
	d.Helper()
	stopped := d.seen.watch(v.listened())
	until()
	v.Kill()
	stopped()
	d.keeps(v)
}

// keeps checks that everything seen is on the disk.
func (d *traced) keeps(v *victim) {
	d.Helper()
	disk, _ := d.recovers(v, d.node("none", "1h"))
	disk.Kill()
}

// F16: after a sync that failed nobody knows what is on the disk. So the file is left alone, nothing
// new is shown, and a restart finds out.
func TestFailedSyncStopsIngestAndLosesNothing(t *testing.T) {
	d := newTraced(t)
	v, trace := d.injected("fdatasync:error=EIO:when=20", "1h")
	d.lives(v, func() {
		t.Log(v.unhealthy(regexp.MustCompile(`the disk failed`)))
		if !v.frozen() {
			v.Error("ingest goes on")
		}
	})
	d.leftAlone(trace)
}

// call is a line of a trace: process, system call, the file of its first argument.
var call = regexp.MustCompile(`^(\d+) +(\w+)\((?:\d+<([^>]*)>)?`)

// leftAlone checks that a file was neither written nor synced after a sync of it failed.
func (d *traced) leftAlone(trace string) {
	d.Helper()
	content := readFile(d, trace)
	failed := ""
	waiting := map[string]string{} // by process: the file of a call that has not returned yet
	for line := range strings.Lines(string(content)) {
		m := call.FindStringSubmatch(line)
		process, _, _ := strings.Cut(line, " ")
		file := waiting[process]
		if m != nil {
			file = m[3]
			if waiting[process] = ""; strings.Contains(line, "<unfinished") {
				waiting[process] = file
			}
		}
		switch {
		case failed != "" && m != nil && file == failed && m[2] != "unlinkat":
			d.Errorf("after a sync of it had failed: %s", line)
			return
		case strings.Contains(line, "(INJECTED)"):
			failed = file
		}
	}
	if failed == "" {
		d.Errorf("no sync failed: the test shows nothing")
	}
}

// F13: a disk without space for one call, and with space for the next, stops nothing for good.
func TestNodeGoesOnAfterACallWithoutSpace(t *testing.T) {
	t.Parallel()
	for _, injection := range []string{"pwrite64:error=ENOSPC:when=25", "fallocate:error=ENOSPC:when=2", "fallocate:error=EOPNOTSUPP:when=1+"} {
		t.Run(injection, func(t *testing.T) {
			d := newTraced(t)
			v, trace := d.injected(injection, "60ms")
			d.lives(v, func() {
				v.until("a call fails", func() bool {
					content, err := os.ReadFile(trace)
					return err == nil && strings.Contains(string(content), "(INJECTED)")
				})
				d.seen.pass(v.ready(), d.seen.told())
			})
		})
	}
}

// F18: a disk that takes its time must not be overtaken by what clients hear.
func TestNothingIsToldBeforeASlowDiskHasIt(t *testing.T) {
	d := newTraced(t)
	for round := range 3 {
		v, _ := d.injected(fmt.Sprintf("pwrite64:delay_enter=%d", 10_000+d.random.IntN(10_000)), "1h") // microseconds
		d.lives(v, func() {
			d.seen.pass(v.ready(), d.seen.told())
			d.seen.killAtNews(v)
		})
		t.Logf("round %d: number %d was seen", round, d.seen.told())
	}
}

// F18: while the disk takes seconds for one sync, nothing new is shown, and reads go on.
func TestStalledDiskHoldsUpNoRead(t *testing.T) {
	const stall = 3 * time.Second
	d := newTraced(t)
	v, _ := d.injected(fmt.Sprintf("fdatasync:delay_exit=%d:when=20", stall.Microseconds()), "1h")
	v.ready()
	stands, since, answered := newestSlot(v), time.Now(), 0
	v.until("ingest goes on by itself after a stall, with a warning and with reads answered in the midst of it", func() bool {
		asked := time.Now()
		slot := newestSlot(v)
		if slot != stands {
			over := answered > 0 && strings.Contains(v.errs.String(), "level=WARN")
			stands, since, answered = slot, time.Now(), 0
			return over
		}
		// A read that waited for the disk would come back when the stall is over, not here.
		if asked.Sub(since) > stall/4 && time.Since(since) < stall*3/4 {
			answered++
		}
		return false
	})
	v.Kill()
}

// F1, F9, F11: a node can be killed between any two steps of writing, rotating, snapshotting and pruning.
func TestKilledAtAnySystemCallKeepsWhatItShowed(t *testing.T) {
	rounds := repetitions(t, "LEDGERD_CRASH_CYCLES", 2)
	d := newTraced(t)
	calls := []string{"rename,renameat,renameat2", "fdatasync", "unlink,unlinkat", "fsync", "fallocate,ftruncate", "pwrite64"}
	first := d.random.IntN(len(calls))
	for round := range rounds {
		calls := calls[(first+round)%len(calls)]
		n := 1 + d.random.IntN(8)
		v, _ := d.injected(fmt.Sprintf("%s:signal=SIGKILL:when=%d", calls, n), "30ms")
		if v.listens() {
			stopped := d.seen.watch(v)
			v.gone(patience)
			stopped()
		}
		d.keeps(v)
		t.Logf("round %d: killed at call %d of %s, number %d was seen", round, n, calls, d.seen.told())
	}
}
