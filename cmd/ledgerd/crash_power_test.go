package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

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
		"--log-segment-bytes", "1MiB", "--retain-slots", fmt.Sprint(powerBlocks))
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

// powerBlocks is how many slots of blocks are held: some seconds.
const powerBlocks = 2000

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
	h := remember(t, live.base, powerBlocks)
	s := newSeen(t)
	stop := s.watch(live)
	defer stop()
	last := uint64(0)
	for cut := range cuts {
		s.pass(live, last)
		time.Sleep(between(random, 0, 60*time.Millisecond)) // any moment is good
		before := s.untilNow()
		disk, done := r.cut()
		r.checkCut(live, h, disk, source, before, random)
		t.Logf("cut %d: block %d and number %d were seen", cut, before.tips[0].slot, before.seq)
		if t.Failed() {
			t.Fatalf("failed at cut %d", cut)
		}
		done()
		last, s.nodeID = before.seq, before.nodeID
	}
	if live.IsGone() {
		t.Errorf("the node on the disk itself ended: %v\n%s", live.State(), live.errs)
	}
}

// checkCut looks at what a copy holds. Now and then a node goes on from it with the source, is
// killed, and is looked at again.
func (r *powerRig) checkCut(live *victim, h *history, disk, source string, before *seen, random *rand.Rand) {
	r.Helper()
	r.checkDisk(live, h, disk, before)
	if random.IntN(4) > 0 || r.Failed() {
		return
	}
	v := r.node(disk, source).listened()
	stop := before.watch(v)
	v.ready()
	time.Sleep(between(random, 0, 100*time.Millisecond))
	v.Kill()
	stop()
	r.checkDisk(live, h, disk, before)
}

// checkDisk looks at what a disk holds. The live node comes as far and then waits: on a busy
// machine there would be ever more to look at.
func (r *powerRig) checkDisk(live *victim, h *history, disk string, before *seen) {
	r.Helper()
	v := r.node(disk, "none").ready()
	h.reaches(standsAt(r, v.base, levels[0]))
	live.Signal(syscall.SIGSTOP)
	h.check(v, before)
	live.Signal(syscall.SIGCONT)
	v.Kill()
}
