package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"ledgerd/bench/proc"
	"ledgerd/engine/ledger/wait"
)

const (
	// restartAfter is how long a process that ended stays away.
	restartAfter = time.Second
	// stopWithin is how long a process may take to stop before it is killed.
	stopWithin = 20 * time.Second
)

// keep starts a process, whose output goes to a file, and starts it again whenever it ends by itself, which is told to out. The process is
// in a group of its own, for Ctrl-C is for this program: stop asks it to end, kills it if it does not, and waits for it.
func keep(d daemon, logFile string, out io.Writer) (stop func(), err error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot write the log of %s: %w", d.name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		defer log.Close()
		for {
			how := runOnce(ctx, d, log)
			if ctx.Err() != nil {
				return
			}
			fmt.Fprintf(out, "%s ended (%v) and is started again; its log: %s\n", d.name, how, logFile)
			if wait.Sleep(ctx, restartAfter) != nil {
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}, nil
}

// runOnce runs a process until it ends, or ctx does.
func runOnce(ctx context.Context, d daemon, log *os.File) (how string) {
	// The balancer is here, unless the flags of the nodes say otherwise: a list is given once.
	environment := append([]string{"LEDGERD_TRUSTED_PROXIES=127.0.0.0/8"}, os.Environ()...)
	p, err := proc.Launch(context.Background(), proc.Command{Words: d.argv, Env: environment, Log: log})
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
