package main

import (
	"errors"
	"fmt"
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
