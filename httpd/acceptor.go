package httpd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"

	"github.com/valyala/fasthttp"
)

// acceptor runs fasthttp behind a listener of ours.
type acceptor struct {
	config   listenerConfig
	listener atomic.Pointer[listener]
	stopped  atomic.Bool
	http     *fasthttp.Server
}

// newAcceptor returns an acceptor whose exchanges are handled by handle. Also those whose
// head was refused come there: the conn of the exchange tells.
func newAcceptor(config listenerConfig, handle fasthttp.RequestHandler) *acceptor {
	a := &acceptor{config: config, http: newFastHTTP(config, handle)}
	a.config.stopped = &a.stopped
	return a
}

// readBufferBytes holds the longest head, so that a head which came in one piece is
// checked and parsed where it lies.
const readBufferBytes = 18 << 10

// writeBufferBytes holds the answers to sixteen requests for an account, so that those of a
// usual batch leave in one write.
const writeBufferBytes = 16 << 10

// spareWorkers lets connections that are just ending overlap with those that took their
// places, so that fasthttp's own refusal, which knows none of our headers, never happens.
const spareWorkers = 1024

// newFastHTTP returns the engine below a server: conns have checked what it reads, so it
// has little left to refuse, and nothing it logs may hold what a client sent. Conns keep the
// timeouts.
func newFastHTTP(l listenerConfig, handle fasthttp.RequestHandler) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      handle,
		ErrorHandler:                 handleErrors(handle),
		Logger:                       errorCounter{&l.meters.connErrors},
		Concurrency:                  min(l.maxConns, math.MaxInt32-spareWorkers) + spareWorkers,
		ReadBufferSize:               readBufferBytes,
		WriteBufferSize:              writeBufferBytes,
		MaxRequestBodySize:           maxBodyBytes,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true, // KeepHijackedConns is off: it would keep their buffers too, see conn.Detach
	}
}

// handleErrors makes an exchange of a request that fasthttp gave up: its body did not
// come, or it saw a fault of its own. The connection ends with it.
func handleErrors(handle fasthttp.RequestHandler) func(*fasthttp.RequestCtx, error) {
	return func(ctx *fasthttp.RequestCtx, err error) {
		c := ctx.Conn().(*conn)
		c.verdict = headMalformed
		if isTimeout(err) {
			c.verdict = headTimeout
		}
		c.drainOnClose()
		handle(ctx)
	}
}

// errorCounter counts what fasthttp would log: its texts quote request bytes.
type errorCounter struct{ errors *paddedCounter }

// Printf implements fasthttp.Logger.
func (c errorCounter) Printf(string, ...any) { c.errors.Add(1) }

// errServedTwice says that Serve was called again.
var errServedTwice = errors.New("the server has a listener already")

// Serve answers connections from ln until Shutdown, and then returns nil, or until
// accepting fails for good. It is called once; after Shutdown it closes ln at once.
func (a *acceptor) Serve(ln net.Listener) error {
	l := newListener(ln, a.config)
	if !a.listener.CompareAndSwap(nil, l) {
		return errServedTwice
	}
	if a.stopped.Load() { // Shutdown came first, and may not have seen the listener
		return l.Close()
	}
	if err := a.http.Serve(l); err != nil {
		return fmt.Errorf("cannot accept connections on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, lets the exchanges under way end and returns. When ctx ends
// first it closes the connections that are left and returns ctx's error. WebSockets
// belong to the upgrade handler and stay.
//
// It may come before Serve or while Serve begins. Then fasthttp knows of no listener yet,
// returns at once and would serve the listener for ever; so that one is closed here, and
// what came through it in between is waited for.
func (a *acceptor) Shutdown(ctx context.Context) error {
	a.stopped.Store(true)
	err := a.http.ShutdownWithContext(ctx)
	l := a.listener.Load()
	if l == nil {
		return err
	}
	if err == nil {
		if err = l.Close(); err == nil {
			err = a.http.ShutdownWithContext(ctx)
		}
	}
	if err == nil {
		return nil
	}
	l.closeConns()
	return fmt.Errorf("cannot end all exchanges: %w", err)
}

// connections returns how many connections are open.
func (a *acceptor) connections() int {
	if l := a.listener.Load(); l != nil {
		return l.count()
	}
	return 0
}
