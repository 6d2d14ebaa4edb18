package peer

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// stopPatience is how long a process may take to end when it is asked to.
	stopPatience = 10 * time.Second
	// keptErrors is how much of what a process says on stderr is kept.
	keptErrors = 4 << 10
)

// process is a program that was started.
type process struct {
	cmd    *exec.Cmd
	stderr tail
	ended  chan struct{} // closed when the process is gone
	err    error         // how it ended; after ended
}

// launch starts a program with its stdin and stdout left to the caller's cmd.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &p.stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Pid implements Server.
func (p *process) Pid() int { return p.cmd.Process.Pid }

// stop asks the process to end and waits until it has. That the signal ended it is well.
func (p *process) stop(signal syscall.Signal) error {
	_ = p.cmd.Process.Signal(signal) // it may be gone
	select {
	case <-p.ended:
	case <-time.After(stopPatience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %v: %s", p.cmd.Path, stopPatience, &p.stderr)
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if p.err == nil || ok && status.Signaled() && status.Signal() == signal {
		return nil
	}
	return fmt.Errorf("%s ended badly: %w: %s", p.cmd.Path, p.err, &p.stderr)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-keptErrors):]
	return len(b), nil
}

// String returns what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
