package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// traced is a data directory on which system calls of a node fail, or end it, as they are told to.
type traced struct {
	*testing.T
	dir     string
	source  string
	seen    *seen
	history *history
}

func newTraced(t *testing.T) (*traced, *rand.Rand) {
	t.Helper()
	t.Parallel()
	needs(t, "strace")
	if err := command("strace", "-f", "-qq", "-o", "/dev/null", "true"); err != nil {
		t.Skipf("this machine does not let a test trace: %v", err)
	}
	random, seed := dice(t)
	d := &traced{T: t, dir: keptDir(t), seen: newSeen()}
	d.source = fmt.Sprintf("sim:seed=%d,accounts=300,tps=1000,slot_time=4ms,finality=8,fork_rate=0.2,skip_rate=0.1", seed)
	d.history = remember(t, start(t, "--data-dir", t.TempDir(), "--source", d.source).base, keptBlocks)
	return d, random
}

var traceFlags = []string{"--log-segment-bytes", "128KiB", "--retain-slots", fmt.Sprint(keptBlocks), "--snapshot-interval"}

// under starts a node whose system calls are watched; the trace is written to a file.
func (d *traced) under(injection, snapshotInterval string) (v *victim, trace string) {
	d.Helper()
	trace = filepath.Join(d.TempDir(), "trace")
	calls := "fdatasync,fsync,pwrite64,ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat"
	tracer := []string{"strace", "-f", "-qq", "-y", "-o", trace, "-e", "trace=" + calls, "-e", "inject=" + injection}
	return launchUnder(d, tracer, append(append([]string{"--data-dir", d.dir, "--source", d.source}, traceFlags...), snapshotInterval)...), trace
}

// recovers checks that everything seen is on the disk.
func (d *traced) recovers() {
	d.Helper()
	disk := launch(d, append(append([]string{"--data-dir", d.dir, "--source", "none"}, traceFlags...), "1h")...).ready()
	d.history.check(disk, d.seen)
	disk.kill()
	if d.Failed() {
		d.Fatalf("what the node without a source said:\n%s", disk.errs)
	}
}

// F16: after a sync that failed nobody knows what is on the disk. So the file is left alone, nothing
// new is shown, and a restart finds out.
func TestFailedSyncStopsIngestAndLosesNothing(t *testing.T) {
	d, _ := newTraced(t)
	v, trace := d.under("fdatasync:error=EIO:when=20", "1h")
	if !v.listens() {
		t.Fatalf("ledgerd ended with %v:\n%s", v.State(), v.errs)
	}
	stopped := d.seen.watch(v)
	v.ready()
	why := v.unhealthy(regexp.MustCompile(`(?i)log|disk|sync`))
	t.Log(why)
	v.frozen()
	v.kill()
	stopped()
	d.leftAlone(trace)
	d.recovers()
}

// call is a line of a trace: process, system call, the file of its first argument.
var call = regexp.MustCompile(`^(\d+) +(\w+)\((?:\d+<([^>]*)>)?`)

// leftAlone checks that a file was neither written nor synced after a sync of it failed.
func (d *traced) leftAlone(trace string) {
	d.Helper()
	content, err := os.ReadFile(trace)
	if err != nil {
		d.Fatal(err)
	}
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

// A disk without space for one call, and with space for the next, stops nothing for good.
func TestNodeGoesOnAfterACallWithoutSpace(t *testing.T) {
	for _, injection := range []string{"pwrite64:error=ENOSPC:when=25", "fallocate:error=ENOSPC:when=2", "fallocate:error=EOPNOTSUPP:when=1+"} {
		t.Run(injection, func(t *testing.T) {
			d, _ := newTraced(t)
			v, trace := d.under(injection, "60ms")
			if !v.listens() {
				t.Fatalf("ledgerd ended with %v:\n%s", v.State(), v.errs)
			}
			stopped := d.seen.watch(v)
			v.until("a call fails", func() bool {
				content, err := os.ReadFile(trace)
				return err == nil && strings.Contains(string(content), "(INJECTED)")
			})
			d.seen.pass(v.ready(), d.seen.newest())
			v.kill()
			stopped()
			d.recovers()
		})
	}
}

// A disk that takes its time must not be overtaken by what clients hear.
func TestNothingIsToldBeforeASlowDiskHasIt(t *testing.T) {
	d, random := newTraced(t)
	for round := range 3 {
		v, _ := d.under(fmt.Sprintf("pwrite64:delay_enter=%d", 10_000+random.IntN(10_000)), "1h") // microseconds
		if !v.listens() {
			t.Fatalf("ledgerd ended with %v:\n%s", v.State(), v.errs)
		}
		stopped := d.seen.watch(v)
		d.seen.pass(v.ready(), d.seen.newest())
		d.seen.killAtNews(v)
		stopped()
		d.recovers()
		t.Logf("round %d: number %d was seen", round, d.seen.seq)
	}
}

// While the disk takes seconds for one sync, nothing new is shown, and reads go on.
func TestStalledDiskHoldsUpNoRead(t *testing.T) {
	const stall = 3 * time.Second
	d, _ := newTraced(t)
	v, _ := d.under(fmt.Sprintf("fdatasync:delay_exit=%d:when=20", stall.Microseconds()), "1h")
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
	v.kill()
}

// A node can be killed between any two steps of writing, rotating, snapshotting and pruning.
func TestKilledAtAnySystemCallKeepsWhatItShowed(t *testing.T) {
	rounds := repetitions(t, "LEDGERD_CRASH_CYCLES", 6)
	d, random := newTraced(t)
	calls := []string{"rename,renameat,renameat2", "fdatasync", "unlink,unlinkat", "fsync", "fallocate,ftruncate", "pwrite64"}
	for round := range rounds {
		calls := calls[round%len(calls)]
		n := 1 + random.IntN(8)
		v, _ := d.under(fmt.Sprintf("%s:signal=SIGKILL:when=%d", calls, n), "30ms")
		if v.listens() {
			stopped := d.seen.watch(v)
			v.gone(patience)
			stopped()
		}
		d.recovers()
		t.Logf("round %d: killed at call %d of %s, number %d was seen", round, n, calls, d.seen.seq)
	}
}
