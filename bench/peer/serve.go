package peer

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// Serve is what a peer runs that is this program: it writes its address to out, serves with what
// comes from in, and returns when that ends. SIGTERM and SIGINT end the program at once.
func Serve(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	signal.Reset(syscall.SIGTERM, os.Interrupt)
	serve := map[string]func(net.Listener, io.Reader) error{
		"raw": serveRaw, "bare": serveBare, "nethttp": serveNetHTTP,
	}[name]
	if serve == nil {
		return fmt.Errorf("there is no peer %q", name)
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = ln.Close() }()
	if _, err := fmt.Fprintln(out, ln.Addr()); err != nil {
		return err
	}
	return serve(ln, in)
}
