package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// crashLoop kills nodes on one directory, one after the other.
type crashLoop struct {
	*crashRig
	stood string // where the directory's last node recovered to, if no source went on since
}

// F1, F12: a client believes what it was shown. So it writes down what it sees, the node is killed at
// any moment, and a node that knows no more than the directory must know all of it.
func TestKilledNodeKeepsWhatItShowed(t *testing.T) {
	t.Parallel()
	for _, rates := range []string{"fork_rate=0,skip_rate=0", "fork_rate=0.2,skip_rate=0.1"} {
		t.Run(rates, func(t *testing.T) {
			t.Parallel()
			// The ledger ends nowhere yet: on a busy machine a cycle takes as many slots as it likes.
			source := "sim:seed=%d,accounts=300,tps=1000,slot_time=4ms,finality=8," + rates
			l := &crashLoop{crashRig: newCrashRig(t, keptDir(t), source, "--snapshot-interval", "60ms", "--log-segment-bytes", "128KiB")}
			slot := uint64(0)
			for cycle := range repetitions(t, "LEDGERD_CRASH_CYCLES", 2) {
				slot = l.cycle(cycle).slot
			}
			l.finish(slot + 100)
		})
	}
}

// node starts a ledgerd on the directory, with any number of shards. Whenever it syncs, the death
// of a process alone takes nothing from it.
func (l *crashLoop) node(source string) *victim {
	syncs := []string{"always", "always", "interval:20ms", "off"}
	return l.crashRig.node(source, "--shards", fmt.Sprint(1+l.random.IntN(3)), "--wal-sync", syncs[l.random.IntN(len(syncs))])
}

var recovered = regexp.MustCompile(`msg=recovered (slot=\d+ seq=\d+ state_hash=\S+)`)

// recoversTheSame compares where two nodes recovered to, with nothing between them.
func (l *crashLoop) recoversTheSame(v *victim) {
	l.Helper()
	m := recovered.FindStringSubmatch(v.errs.String())
	if m != nil && l.stood != "" && m[1] != l.stood {
		l.Errorf("a node recovered to %s, the next one on the same directory to %s", l.stood, m[1])
	}
	l.stood = "" // unless it has no source, it may have gone on
}

// cycle lets a node live for a while and ends it, sometimes a few before they are ready, and
// looks at what the directory holds. It returns where that ends.
func (l *crashLoop) cycle(cycle int) place {
	l.Helper()
	for l.random.IntN(4) == 0 {
		v := l.node(l.source)
		time.Sleep(between(l.random, 0, 120*time.Millisecond)) // any moment of a start is good
		v.Kill()
		l.recoversTheSame(v)
	}
	v := l.node(l.source).listened()
	stopped := l.seen.watch(v)
	v.ready()
	time.Sleep(between(l.random, 5*time.Millisecond, 150*time.Millisecond))
	switch l.random.IntN(5) {
	case 0:
		v.stop()
	case 1, 2:
		v.Kill()
	default:
		l.seen.killAtNews(v)
	}
	stopped()
	l.recoversTheSame(v)

	disk, here := l.recovers(v, l.node("none"))
	if m := recovered.FindStringSubmatch(disk.errs.String()); m != nil {
		l.stood = m[1]
	}
	l.Logf("cycle %d: slot %d, number %d", cycle, here.slot, here.seq)
	if l.random.IntN(2) == 0 {
		disk.stop()
	} else {
		disk.Kill()
	}
	return here
}

var endOfInput = regexp.MustCompile(`msg="end of input" source=\S+ (slot=\d+ seq=\d+ state_hash=\S+)`)

// finish lets the directory's node go on until the ledger ends at a slot. It must be the same end, with the same state, as that of a
// node that nobody killed.
func (l *crashLoop) finish(slot uint64) {
	l.Helper()
	source := fmt.Sprintf("%s,slots=%d", l.source, slot)
	straight := launch(l, "--data-dir", l.TempDir(), "--source", source).ready()
	v := l.node(source).ready()
	ledgertest.Equal(l, v.ending(), straight.ending(), "where the ledger ended, which without crashes is the same")
	for _, program := range simPrograms {
		for _, level := range levels {
			path := "/accounts/program/" + program + "?limit=10000&commitment=" + level
			ledgertest.Equal(l, v.get(path).body, straight.get(path).body, "GET %s, as without crashes,", path)
		}
	}
	v.stop()
	verified(l.T, l.dir)
	if snapshots, err := filepath.Glob(filepath.Join(l.dir, "snapshots", "*")); err != nil || len(snapshots) == 0 {
		l.Errorf("no snapshot was taken (%v): the test shows less than it says", err)
	}
}
