package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Command says what to start.
type Command struct {
	Words []string // the program, found as a shell finds it, and its arguments
	Env   []string // nil: that of this process
	Stdin *os.File // nil: an empty one
	Log   *os.File // where both outputs go; nil: into the transcripts
}

// Process is a program that was started, with all that it starts itself: they are one group of processes,
// which signals reach together and which dies with this process, however that ends.
type Process struct {
	Out, Err *Transcript // of stdout and stderr; without Command.Log
	cmd      *exec.Cmd
	gone     chan struct{} // closed when the process is
}

// Launch starts a program and waits for nothing. It is killed at the latest when ctx ends.
func Launch(ctx context.Context, c Command) (*Process, error) {
	p := &Process{Out: NewTranscript(), Err: NewTranscript(), gone: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, c.Words[0], c.Words[1:]...)
	p.cmd.Env, p.cmd.SysProcAttr = c.Env, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.Cancel = func() error { p.Signal(syscall.SIGKILL); return nil }
	if c.Stdin != nil {
		p.cmd.Stdin = c.Stdin
	}
	p.cmd.Stdout, p.cmd.Stderr = p.Out, p.Err
	if c.Log != nil {
		p.cmd.Stdout, p.cmd.Stderr = c.Log, c.Log
	}
	started := make(chan error)
	go func() {
		// The system sends Pdeathsig when the thread ends that started the program, be it long before this process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		if started <- err; err != nil {
			return
		}
		_ = p.cmd.Wait() // how it ended is in ProcessState
		p.Out.End()
		p.Err.End()
		close(p.gone)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.Words[0], err)
	}
	return p, nil
}

// Pid returns the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal to the group. One that is gone gets none.
func (p *Process) Signal(s syscall.Signal) {
	if !p.IsGone() { // until it was waited for its id is nobody else's
		_ = syscall.Kill(-p.Pid(), s)
	}
}

// Gone is closed when the process has ended, for whatever reason.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// IsGone reports whether the process has ended.
func (p *Process) IsGone() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// State returns how the process ended, once it is gone: State().ExitCode() is -1 where a signal ended it.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Kill ends the group at once, if it still runs, and waits for it.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.gone
}

// Stop asks the process to end with a signal and waits for it. One that is not gone when ctx ends is killed. Any other end than
// exit code 0, or by that signal, is an error.
func (p *Process) Stop(ctx context.Context, s syscall.Signal) error {
	p.Signal(s)
	select {
	case <-p.gone:
	case <-ctx.Done():
		p.Kill()
		return p.Failure(fmt.Sprintf("%s did not stop: %v", p.cmd.Path, ctx.Err()))
	}
	status, ok := p.State().Sys().(syscall.WaitStatus)
	if p.State().ExitCode() == 0 || ok && status.Signaled() && status.Signal() == s {
		return nil
	}
	return p.Failure(fmt.Sprintf("%s ended with %v", p.cmd.Path, p.State()))
}

// Await waits until stdout matches a pattern and returns the submatches. It is an error if the process ends before, or ctx does.
func (p *Process) Await(ctx context.Context, pattern *regexp.Regexp) ([]string, error) {
	m, err := p.Out.Await(ctx, pattern)
	if err != nil {
		return nil, p.Failure(err.Error())
	}
	return m, nil
}

// Until tries something, time and again, until it succeeds. It is an error if the process ends before, patience does, or ctx.
func (p *Process) Until(ctx context.Context, patience, every time.Duration, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.gone:
			return p.Failure(fmt.Sprintf("it ended: %v", err))
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), p.Failure(err.Error()))
		case <-time.After(every):
		}
	}
}

// Failure returns an error that says what happened, and what the process said last.
func (p *Process) Failure(what string) error {
	if said := strings.TrimSpace(p.Err.Tail()); said != "" {
		what += "; it said: " + said
	}
	return errors.New(what)
}

// AbsentError says that a program is not there.
type AbsentError struct{ Program string }

// Error says where it was looked for.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("there is no %s beside this program, on the PATH or in /usr/sbin", e.Program)
}

// Find returns the program of a name that lies beside another one, or else that on the search path, or else that where Debian keeps
// servers; else an *AbsentError.
func Find(name, beside string) (string, error) {
	for _, place := range []string{filepath.Join(filepath.Dir(beside), name), name, filepath.Join("/usr/sbin", name)} {
		if found, err := exec.LookPath(place); err == nil {
			return found, nil
		}
	}
	return "", &AbsentError{name}
}
