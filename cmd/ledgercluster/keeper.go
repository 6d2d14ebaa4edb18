package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"ledgerd/bench/proc"
)

const (
	// restartAfter is how long a process that ended stays away.
	restartAfter = time.Second
	// stopWithin is how long a process may take to stop before it is killed.
	stopWithin = 20 * time.Second
)

// keeper runs one process, and starts it again whenever it ends by itself.
type keeper struct {
	daemon
	stop context.CancelFunc // asks it to end for good
	done chan struct{}      // closed when it has
}

// keep starts a process, whose output goes to a file. What happens to it is told to out.
func keep(d daemon, logFile string, out io.Writer) (*keeper, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write the log of %s: %w", d.name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{daemon: d, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(k.done)
		defer log.Close()
		for {
			how := k.once(ctx, log)
			if ctx.Err() != nil {
				return
			}
			fmt.Fprintf(out, "%s ended (%v) and is started again; its log: %s\n", d.name, how, logFile)
			select {
			case <-time.After(restartAfter):
			case <-ctx.Done():
				return
			}
		}
	}()
	return k, nil
}

// once runs the process until it ends, or ctx does: then it is asked to end, and killed if it does not. It is in a group of its own, for Ctrl-C
// is for this program, which stops them in order.
func (k *keeper) once(ctx context.Context, log *os.File) string {
	p, err := proc.Launch(context.Background(), proc.Command{Words: k.argv, Log: log})
	if err != nil {
		return err.Error()
	}
	select {
	case <-p.Gone():
	case <-ctx.Done():
		late, cancel := context.WithTimeout(context.Background(), stopWithin)
		defer cancel()
		_ = p.Stop(late, syscall.SIGTERM) // how it ended is in its log
	}
	return p.State().String()
}
