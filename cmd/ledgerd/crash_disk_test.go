package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk is a file system in memory that is soon full, with a data directory on it.
type smallDisk struct {
	*crashRig
	disk string
}

// diskBytes is the size of the small disk, and lowBytes what must be free of it for ingest to go on.
const (
	diskBytes = 16 << 20
	lowBytes  = 1 << 20
)

// F13, F14, F15: when the disk is full ingest pauses and reads go on. When there is space again ingest goes on by
// itself. Nothing is lost in between, whether the node is killed or not.
func TestFullDiskPausesIngestAndLosesNothing(t *testing.T) {
	t.Parallel()
	needsRoot(t, "mount", "umount")
	cycles := repetitions(t, "LEDGERD_DISK_CYCLES", 2)
	disk := filepath.Join(t.TempDir(), "disk")
	if _, err := mount(t, disk, "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", diskBytes), "tmpfs"); err != nil {
		t.Skipf("this machine does not let a test mount: %v", err)
	}
	data := filepath.Join(disk, "data")
	keepIfFailed(t, data)
	d := &smallDisk{newCrashRig(t, data, crashLedger, "--min-free-bytes", "1MiB", "--log-segment-bytes", "1MiB", "--snapshot-interval", "200ms"), disk}
	for cycle := range cycles {
		d.cycle(cycle)
	}
}

// cycle fills the disk under a node and frees it, kills the node at some point of this, and looks
// at what the disk holds.
func (d *smallDisk) cycle(cycle int) {
	d.Helper()
	v := d.node(d.source).ready()
	stopped := d.seen.watch(v)
	d.seen.pass(v, d.seen.told())
	v.until("a snapshot gives up the log of earlier cycles", func() bool { return strings.Contains(v.errs.String(), "msg=snapshot") })
	left := int64(0)
	if cycle%2 == 0 {
		left = lowBytes / 2 // there is space, but less than there must be
	}
	free, why := d.fill(left), ""
	for tries := 0; why == "" || !v.frozen(); tries++ {
		if tries == 4 {
			d.Fatalf("on a disk that is full again and again ingest goes on: %s", why)
		}
		d.fill(left) // a snapshot that was under way may have given up a part of the log
		why = v.unhealthy(regexp.MustCompile(`(?i)space|full|free`))
	}
	d.Logf("cycle %d: with %d bytes left: %s", cycle, left, why)
	if (cycle+1)/2%2 == 0 { // the first cycle and the second show both
		v.Kill()
		free()
	} else {
		stood := newestSlot(v)
		free()
		v.until("ingest goes on by itself once there is space", func() bool {
			return v.get("/health").status == http.StatusOK && newestSlot(v) > stood
		})
		time.Sleep(between(d.random, 0, 100*time.Millisecond)) // any moment is good
		v.Kill()
	}
	stopped()
	disk, _ := d.recovers(v, d.node("none"))
	disk.Kill()
}

// fill takes the space of the disk until no more than so many bytes are left.
func (d *smallDisk) fill(left int64) (free func()) {
	d.Helper()
	path := filepath.Join(d.disk, "filler")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	must(d, err)
	defer f.Close()
	for space := int64(1); space > 0; {
		var stat syscall.Statfs_t
		must(d, syscall.Statfs(d.disk, &stat))
		space = max(0, int64(stat.Bavail)*stat.Bsize-left)
		if _, err := f.Write(make([]byte, space)); err != nil && !errors.Is(err, syscall.ENOSPC) {
			d.Fatal(err)
		}
	}
	return func() { must(d, os.Remove(path)) }
}

// unhealthy waits until the node says that it is not healthy, and why.
func (v *victim) unhealthy(why *regexp.Regexp) string {
	v.Helper()
	var a answer
	v.until(fmt.Sprintf("health is 503 with a reason like %q", why), func() bool {
		a = v.get("/health")
		return a.status == http.StatusServiceUnavailable && why.MatchString(a.body)
	})
	for path, want := range map[string]int{"/readyz": http.StatusServiceUnavailable, "/livez": http.StatusOK} {
		if a, err := v.ask(v.ops + path); err != nil || a.status != want {
			v.Errorf("%s while health is 503: %d %v", path, a.status, err)
		}
	}
	return a.body
}

// frozen checks for a while that the node answers, and reports whether it is always from the same slot.
func (v *victim) frozen() bool {
	v.Helper()
	stands := newestSlot(v)
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); {
		if slot := newestSlot(v); slot != stands {
			v.Logf("the newest slot is %d, and was %d when health said that ingest does not go on", slot, stands)
			return false
		}
		if a := v.get("/transactions/recent?limit=10"); a.status != http.StatusOK {
			v.Fatalf("a read while ingest does not go on: %d %s", a.status, a.body)
		}
	}
	return true
}

// powerRig is a disk whose power can be cut as often as one likes: a file system in a file on
// another file system that copies files at one instant. A copy holds what had reached
// the disk at that instant; all that the kernel still held back is lost.
type powerRig struct {
	*testing.T
	outer string // directory of the file system with the disk and its copies
	disk  string // directory of the disk
}

func newPowerRig(t *testing.T) *powerRig {
	t.Helper()
	needsRoot(t, "mkfs.xfs", "mkfs.ext4", "mount", "umount")
	dir := t.TempDir()
	r := &powerRig{T: t, outer: filepath.Join(dir, "outer"), disk: filepath.Join(dir, "disk")}
	r.format(filepath.Join(dir, "outer.img"), "8G", "mkfs.xfs", "-q", "-m", "reflink=1")
	if _, err := mount(t, r.outer, "-o", "loop", filepath.Join(dir, "outer.img")); err != nil {
		t.Skipf("this machine does not let a test mount: %v", err)
	}
	r.format(filepath.Join(r.outer, "disk.img"), "1G", "mkfs.ext4", "-q")
	if _, err := mount(t, r.disk, "-o", "loop", filepath.Join(r.outer, "disk.img")); err != nil {
		t.Skipf("this machine does not let a test mount: %v", err)
	}
	return r
}

// format makes a file that takes no space yet and a file system in it.
func (r *powerRig) format(path, size string, words ...string) {
	r.Helper()
	for _, words := range [][]string{{"truncate", "-s", size, path}, append(words, path)} {
		must(r, command(words...))
	}
}

// node starts a ledgerd on a mounted disk.
func (r *powerRig) node(disk, source string) *victim {
	return launch(r, "--data-dir", filepath.Join(disk, "data"), "--source", source, "--snapshot-interval", "100ms",
		"--log-segment-bytes", "1MiB")
}

// cut takes the power away from a copy of the disk and mounts it where the result says.
func (r *powerRig) cut() (disk string, done func()) {
	r.Helper()
	image := filepath.Join(r.outer, "cut.img") // there is one at a time
	must(r, command("cp", "--reflink=always", filepath.Join(r.outer, "disk.img"), image))
	disk = filepath.Join(filepath.Dir(r.outer), "cut")
	unmount, err := mount(r.T, disk, "-o", "loop", image)
	if err != nil {
		r.Fatalf("the disk is broken after a power cut: %v", err)
	}
	keepIfFailed(r.T, filepath.Join(disk, "data"))
	return disk, func() {
		unmount()
		must(r, os.Remove(image))
	}
}

// F1, F2, F10: the power of a real file system is cut again and again while a node writes to it and clients
// look. What they had seen before the cut began is on the disk.
func TestPowerCutLosesNothingThatWasSeen(t *testing.T) {
	t.Parallel()
	cuts := repetitions(t, "LEDGERD_POWER_CUTS", 3)
	random, seed := seededRand(t)
	r := newPowerRig(t)
	source := fmt.Sprintf("sim:seed=%d,accounts=500,tps=500,slot_time=8ms,finality=12,fork_rate=0.2,skip_rate=0.1", seed)
	live := r.node(r.disk, source)
	time.Sleep(between(random, 0, 60*time.Millisecond))
	begun, done := r.cut() // while the node makes its directory
	r.node(begun, "none").ready().Kill()
	done()
	live.ready()
	s := newSeen(t)
	stop := s.watch(live)
	defer stop()
	last := uint64(0)
	for cut := range cuts {
		s.pass(live, last)
		time.Sleep(between(random, 0, 60*time.Millisecond)) // any moment is good
		before := s.untilNow()
		disk, done := r.cut()
		r.checkCut(disk, source, before, random)
		t.Logf("cut %d: block %d and number %d were seen", cut, before.tips[0].Slot, before.seq)
		if t.Failed() {
			t.Fatalf("failed at cut %d", cut)
		}
		done()
		last = before.seq
	}
	if live.IsGone() {
		t.Errorf("the node on the disk itself ended: %v\n%s", live.State(), live.errs)
	}
}

// checkCut looks at what a copy holds. Now and then a node goes on from it with the source, is
// killed, and is looked at again.
func (r *powerRig) checkCut(disk, source string, before *seen, random *rand.Rand) {
	r.Helper()
	r.checkDisk(disk, before)
	if random.IntN(4) > 0 || r.Failed() {
		return
	}
	v := r.node(disk, source).listened()
	stop := before.watch(v)
	v.ready()
	time.Sleep(between(random, 0, 100*time.Millisecond))
	v.Kill()
	stop()
	r.checkDisk(disk, before)
}

// checkDisk looks at what a disk holds.
func (r *powerRig) checkDisk(disk string, before *seen) {
	r.Helper()
	v := r.node(disk, "none").ready()
	before.check(v)
	v.Kill()
}
