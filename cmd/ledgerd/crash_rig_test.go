package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds every step of a test that deals with processes, on a machine as busy as may be.
// It decides only when a test fails, never whether one passes.
const patience = 2 * time.Minute

// victim is a ledgerd of its own that a test ends by force.
type victim struct {
	testing.TB
	cmd       *exec.Cmd
	out, errs *transcript
	ended     chan struct{} // closed when the process is gone
	base, ops string        // addresses, known once it listens
	client    *http.Client
}

// launch starts this test binary as `ledgerd serve` on free ports and waits for nothing.
func launch(t testing.TB, args ...string) *victim { return launchUnder(t, nil, args...) }

// launchUnder starts it under another program, which is told by the words before ledgerd's.
func launchUnder(t testing.TB, tracer []string, args ...string) *victim {
	t.Helper()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--rate-limit-minute", "0", "--rate-limit-hour", "0"}, args...)
	return launchProgram(t, tracer, args...)
}

// launchProgram starts any command of ledgerd.
func launchProgram(t testing.TB, tracer []string, args ...string) *victim {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Concat(tracer, []string{binary}, args)
	v := &victim{
		TB: t, cmd: exec.Command(words[0], words[1:]...), out: newTranscript(), errs: newTranscript(), ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4, DisableCompression: true}, Timeout: patience},
	}
	v.cmd.Env = append(os.Environ(), asProgram+"=1")
	v.cmd.Stdout, v.cmd.Stderr = v.out, v.errs
	// A group of its own: a signal reaches the tracer and what it traces, and nobody else.
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = v.cmd.Wait() // how it ended is in ProcessState
		close(v.out.ended)
		close(v.errs.ended)
		close(v.ended)
	}()
	t.Cleanup(func() {
		if !v.isGone() {
			v.signal(syscall.SIGKILL)
			<-v.ended
		}
		v.client.CloseIdleConnections()
	})
	return v
}

func (v *victim) isGone() bool {
	select {
	case <-v.ended:
		return true
	default:
		return false
	}
}

// bannerAddresses finds where a node listens in what it prints.
var bannerAddresses = regexp.MustCompile(`REST +(http://\S+/api)/status(?s:.*)operators +(http://\S+)/metrics`)

// listens waits until the banner tells the addresses; false if the process is gone before.
func (v *victim) listens() bool {
	v.Helper()
	if v.base != "" {
		return true
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if m := bannerAddresses.FindStringSubmatch(v.out.String()); m != nil {
			v.base, v.ops = m[1], m[2]
			return true
		}
		select {
		case <-v.out.written:
		case <-v.ended:
			return false
		case <-late.C:
			v.Fatalf("no banner within %v:\n%s%s", patience, v.out, v.errs)
		}
	}
}

// ready waits until the node answers questions.
func (v *victim) ready() *victim {
	v.Helper()
	if !v.listens() {
		v.Fatalf("ledgerd ended with %v before it listened:\n%s", v.cmd.ProcessState, v.errs)
	}
	v.until("the node is ready", func() bool {
		a, err := v.ask(v.ops + "/readyz")
		return err == nil && a.status == http.StatusOK
	})
	return v
}

// until tries again and again what must come true while the process lives.
func (v *victim) until(what string, holds func() bool) {
	v.Helper()
	v.untilWithin(patience, what, holds)
}

func (v *victim) untilWithin(longest time.Duration, what string, holds func() bool) {
	v.Helper()
	for deadline := time.Now().Add(longest); !holds(); time.Sleep(time.Millisecond) {
		if v.isGone() {
			v.Fatalf("ledgerd ended with %v before %s:\n%s", v.cmd.ProcessState, what, v.errs)
		}
		if time.Now().After(deadline) {
			v.Fatalf("it does not come true within %v that %s:\n%s", longest, what, v.errs)
		}
	}
}

// ask sends one request.
func (v *victim) ask(url string) (answer, error) {
	response, err := v.client.Get(url)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}

// get asks for a path below the base address. It must be answered.
func (v *victim) get(path string) answer {
	v.Helper()
	a, err := v.ask(v.base + path)
	if err != nil {
		v.Fatalf("GET %s: %v\n%s", path, err, v.errs)
	}
	return a
}

// signal sends to the process, and to its tracer if it has one.
func (v *victim) signal(s syscall.Signal) {
	// The group outlives its leader no longer than the wait for it.
	if err := syscall.Kill(-v.cmd.Process.Pid, s); err != nil && err != syscall.ESRCH {
		v.Errorf("cannot send %v: %v", s, err)
	}
}

// gone waits for the end of the process and returns its exit code, -1 after a kill.
func (v *victim) gone(within time.Duration) int {
	v.Helper()
	select {
	case <-v.ended:
	case <-time.After(within):
		v.Fatalf("the process has not ended within %v:\n%s", within, v.errs)
	}
	return v.cmd.ProcessState.ExitCode()
}

// kill ends the process as a crash does.
func (v *victim) kill() {
	v.Helper()
	if !v.isGone() {
		v.signal(syscall.SIGKILL)
	}
	v.gone(patience)
}

// stop ends the process as an operator does.
func (v *victim) stop() {
	v.Helper()
	v.signal(syscall.SIGTERM)
	if code := v.gone(patience); code != exitOK {
		v.Fatalf("exit code %d after SIGTERM, want 0:\n%s", code, v.errs)
	}
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

// dice returns random numbers and what repeats them.
func dice(t *testing.T) (*rand.Rand, uint64) {
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the data directory is kept: %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
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
		if err := command("cp", "-a", dir, keptDir(t)); err != nil {
			t.Error(err)
		}
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
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := command(append(append([]string{"mount"}, words...), dir)...); err != nil {
		return nil, err
	}
	mounted := true
	unmount = func() {
		if !mounted {
			return
		}
		mounted = false
		if err := command("umount", dir); err != nil {
			t.Errorf("%v; it goes when the last file in it is closed", err)
			_ = command("umount", "--lazy", dir)
		}
	}
	t.Cleanup(unmount)
	return unmount, nil
}
