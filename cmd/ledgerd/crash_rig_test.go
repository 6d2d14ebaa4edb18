package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// keptBlocks is how many slots of blocks the nodes of the crash tests hold: few, so
// that what is pruned and what is not crosses the crashes too.
const keptBlocks = 200

// crashLedger is what the nodes follow, completed by a seed.
const crashLedger = "sim:seed=%d,accounts=300,tps=1000,slot_time=4ms,finality=8,fork_rate=0.2,skip_rate=0.1"

// crashRig is a data directory, the nodes that live and die on it, and what clients saw of them.
type crashRig struct {
	*testing.T
	random *rand.Rand
	dir    string
	source string
	flags  []string // of all nodes
	seen   *seen
}

// newCrashRig makes a rig on a directory. The source lacks its seed.
func newCrashRig(t *testing.T, dir, source string, flags ...string) *crashRig {
	t.Helper()
	random, seed := seededRand(t)
	return &crashRig{T: t, random: random, dir: dir, source: fmt.Sprintf(source, seed), flags: flags, seen: newSeen(t)}
}

// node starts a ledgerd on the directory.
func (r *crashRig) node(source string, more ...string) *victim {
	r.Helper()
	args := []string{"--data-dir", r.dir, "--source", source, "--retain-slots", fmt.Sprint(keptBlocks)}
	return launch(r, slices.Concat(args, r.flags, more)...)
}

// recovers checks that a node which knows no more than the directory knows everything that was seen of the last one. It returns that
// node and where it stands.
func (r *crashRig) recovers(last, disk *victim) (*victim, place) {
	r.Helper()
	here := r.seen.check(disk.ready())
	if r.Failed() {
		r.Fatalf("what the last nodes said:\n%s\n%s", last.errs, disk.errs)
	}
	return disk, here
}

// listened fails where the node ended before it listened.
func (v *victim) listened() *victim {
	v.Helper()
	if !v.listens() {
		v.Fatalf("ledgerd ended with %v:\n%s", v.State(), v.errs)
	}
	return v
}

// repetitions returns how often a test repeats itself: often by hand and in the long test, less
// often otherwise, and least in a short run.
func repetitions(t *testing.T, variable string, standard int) int {
	t.Helper()
	text := os.Getenv(variable)
	switch {
	case text == "" && testing.Short():
		return (standard + 1) / 2
	case text == "":
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a positive number", variable, text)
	}
	return n
}

// seededRand returns random numbers and what repeats them.
func seededRand(t *testing.T) (*rand.Rand, uint64) {
	t.Helper()
	seed := rand.Uint64() >> 32 // short to type
	if text := os.Getenv("LEDGERD_CRASH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("LEDGERD_CRASH_SEED=%s is not a number", text)
		}
	}
	t.Logf("LEDGERD_CRASH_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

// between returns a random duration.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}

// keptDir returns a directory that a failed test leaves behind to be looked at.
func keptDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ledgerd-crash-")
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the data directory is kept: %s", dir)
			return
		}
		ledgertest.ErrorIs(t, os.RemoveAll(dir), nil, "removing what the test held")
	})
	return dir
}

// keepIfFailed copies a directory to a place that stays when the test has failed, before
// what it lies on is unmounted.
func keepIfFailed(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := os.Stat(dir); err != nil || !t.Failed() {
			return
		}
		ledgertest.ErrorIs(t, command("cp", "-a", dir, keptDir(t)), nil, "keeping the directory")
	})
}

// needsRoot skips a test that mounts file systems, where that cannot be done, and says what
// is missing.
func needsRoot(t *testing.T, programs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting file systems needs root")
	}
	needs(t, programs...)
}

func needs(t *testing.T, programs ...string) {
	t.Helper()
	var missing []string
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		t.Skipf("not installed here: %s", strings.Join(missing, ", "))
	}
}

// command runs a program of the system to its end.
func command(words ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(words, " "), err, out)
	}
	return nil
}

// mount mounts a file system until the test ends, or until the function it returns is called.
func mount(t *testing.T, dir string, words ...string) (unmount func(), err error) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o750))
	if err := command(append(append([]string{"mount"}, words...), dir)...); err != nil {
		return nil, err
	}
	unmount = sync.OnceFunc(func() {
		if err := command("umount", dir); err != nil {
			t.Errorf("%v; it goes when the last file in it is closed", err)
			_ = command("umount", "--lazy", dir)
		}
	})
	t.Cleanup(unmount)
	return unmount, nil
}
