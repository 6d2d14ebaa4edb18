// Package signals says when a program is asked to end.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that ends when the program is asked to: by Ctrl-C, SIGTERM, or a terminal that is closed, unless the program
// ignores that, as nohup has it. A second Ctrl-C or SIGTERM ends the process at once. A second hang-up does not:
// of a terminal that is closed the shell tells, and the kernel once more.
func Context() context.Context {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	endsAtHangUp := !signal.Ignored(syscall.SIGHUP)
	if endsAtHangUp {
		ends = append(ends, syscall.SIGHUP)
	}
	signalled, stop := signal.NotifyContext(context.Background(), ends...)
	ctx, end := context.WithCancelCause(context.Background())
	context.AfterFunc(signalled, func() {
		if endsAtHangUp {
			signal.Ignore(syscall.SIGHUP) // before it would end the process again
		}
		stop() // before anybody hears of the first, so that none is swallowed
		end(context.Cause(signalled))
	})
	return ctx
}
