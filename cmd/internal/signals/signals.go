// Package signals says when a program is asked to end.
package signals

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that ends when the program is asked to: by Ctrl-C, SIGTERM, or a terminal that is closed, unless the program
// ignores that, as nohup has it. A second signal ends the process at once.
func Context() context.Context {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		ends = append(ends, syscall.SIGHUP)
	}
	signalled, stop := signal.NotifyContext(context.Background(), ends...)
	ctx, end := context.WithCancelCause(context.Background())
	context.AfterFunc(signalled, func() {
		stop() // before anybody hears of the first, so that none is swallowed
		end(context.Cause(signalled))
	})
	return ctx
}
