package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/ratelimit"
)

// Handler answers one request. fault, if not nil, says what is wrong with it: then nothing of it is to be trusted, and the connection
// ends with the answer.
type Handler func(ctx *fasthttp.RequestCtx, c *Conn, fault *Fault)

// Config says what a server does. Handler is required; the zero value of everything else works.
type Config struct {
	Handler Handler // of Serve

	Identity          *ratelimit.Identity // nil: no peer is trusted or exempt
	MaxConns          int                 // 0: what the process' file descriptors allow
	MaxConnsPerClient int                 // 0: 100

	IdleTimeout time.Duration // between requests; 0: 75 s

	TLS *tls.Config // of every connection; nil: none is encrypted

	Log *slog.Logger // nil: silent
}

// WithDefaults returns the configuration with every default in its place.
func (c Config) WithDefaults() Config {
	c.MaxConnsPerClient = cmp.Or(c.MaxConnsPerClient, 100)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 75*time.Second)
	c.Identity = cmp.Or(c.Identity, ratelimit.NewIdentity(nil, nil))
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Server runs fasthttp behind a listener of ours.
type Server struct {
	Counts  Counts
	config  Config
	caps    *caps
	stopped atomic.Bool
	http    *fasthttp.Server

	mu        sync.Mutex
	listeners []*listener
}

const (
	readTimeout = 5 * time.Second // for one request, from its first byte
	// readBufferBytes holds the longest head that can be accepted.
	readBufferBytes = 2<<10 + maxRequestLineBytes + maxHeaderBlockBytes
	// writeBufferBytes holds the answers to sixteen requests for an account, so that those of
	// a usual batch leave in one write.
	writeBufferBytes = 16 << 10
	// spareWorkers lets connections that are just ending overlap with those that follow them,
	// so that fasthttp's own refusal, which knows none of our headers, never happens.
	spareWorkers = 1024
)

// New returns a server that serves nothing yet.
func New(config Config) *Server {
	s := &Server{config: config.WithDefaults()}
	s.caps = newCaps(&s.config, &s.Counts)
	s.http = &fasthttp.Server{
		Handler:                      s.handle,
		ErrorHandler:                 s.handleError,
		ExpectHandler:                s.mayContinue,
		HeaderReceived:               prepare,
		Logger:                       errorCounter{&s.Counts.Errors},
		Concurrency:                  min(s.caps.mostExempt, math.MaxInt32-spareWorkers) + spareWorkers,
		ReadTimeout:                  readTimeout,
		IdleTimeout:                  s.config.IdleTimeout,
		ReadBufferSize:               readBufferBytes,
		WriteBufferSize:              writeBufferBytes,
		MaxRequestBodySize:           maxBodyBytes,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true, // KeepHijackedConns is off: it would keep their buffers too, see Conn.Detach
	}
	return s
}

// handle is one request that fasthttp could parse.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	c := ctx.Conn().(*Conn) // the listener makes no others
	closes, fault := checkHead(&ctx.Request.Header)
	if fault == nil && !c.scanner.explains(ctx.Request.Body()) {
		fault = ErrMalformed
	}
	c.handler(ctx, c, fault)
	if fault != nil {
		c.draining.Store(true)
	}
	c.scanner.finish(headBytes(&ctx.Request.Header) + len(ctx.Request.Body()))
	if closes || fault != nil {
		ctx.SetConnectionClose()
	}
}

// mayContinue returns 100 if the client may send the body it announces, else the status of the
// answer.
func (s *Server) mayContinue(ctx *fasthttp.RequestCtx) int {
	if _, fault := checkHead(&ctx.Request.Header); fault == nil {
		return fasthttp.StatusContinue
	}
	s.handle(ctx)
	return ctx.Response.StatusCode()
}

// handleError is one request that fasthttp gave up. The connection ends with it. A peer
// that has sent nothing gets no answer.
func (s *Server) handleError(ctx *fasthttp.RequestCtx, err error) {
	c := ctx.Conn().(*Conn)
	if !c.scanner.heard {
		_ = c.Conn.Close() // what is still written to it is lost
		return
	}
	_, tooLong := errors.AsType[*fasthttp.ErrSmallBuffer](err)
	fault := ErrMalformed
	switch {
	case c.plain:
		fault = ErrPlain
	case c.scanner.timedOut:
		fault = ErrTimeout
	case errors.Is(err, fasthttp.ErrBodyTooLarge):
		fault = ErrBodyTooLarge
	case tooLong && c.scanner.lineBytes < readBufferBytes: // there is a line end in the buffer
		fault = ErrFieldsTooLarge
	case tooLong:
		fault = ErrLineTooLong
	}
	ctx.Response.SkipBody = c.scanner.isHEAD()
	c.draining.Store(true)
	c.handler(ctx, c, fault)
}

// errorCounter counts what fasthttp would log: its texts quote request bytes.
type errorCounter struct{ errors *atomic.Uint64 }

// Printf implements fasthttp.Logger.
func (c errorCounter) Printf(string, ...any) { c.errors.Add(1) }

// Serve answers connections from ln until Shutdown, and then returns nil, or until
// accepting fails for good. It may be called for several listeners, whose connections are capped together; after Shutdown it closes ln at once.
func (s *Server) Serve(ln net.Listener) error { return s.ServeWith(ln, s.config.Handler) }

// ServeWith is Serve with another handler.
func (s *Server) ServeWith(ln net.Listener, handler Handler) error {
	l := newListener(ln, &s.config, s.caps)
	l.handler = handler
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	if s.stopped.Load() { // Shutdown came first, and may not have seen the listener
		return l.Close()
	}
	if err := s.http.Serve(l); err != nil {
		return fmt.Errorf("cannot accept connections on %s: %w", ln.Addr(), err)
	}
	return nil
}

// Shutdown stops accepting, lets the exchanges under way end and returns. When ctx ends
// first it closes the connections that are left and returns ctx's error. WebSockets
// belong to those whom they were handed over to, and stay.
//
// It may come before Serve or while Serve begins. Then fasthttp does not know of a listener yet,
// returns at once and would serve the listener for ever; so all are closed here, and
// what came through one in between is waited for.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopped.Store(true)
	err := s.http.ShutdownWithContext(ctx)
	if err == nil {
		if err = s.closeListeners(); err == nil {
			err = s.http.ShutdownWithContext(ctx)
		}
	}
	if err == nil {
		return nil
	}
	s.closeConns()
	return fmt.Errorf("cannot end all exchanges: %w", err)
}

func (s *Server) closeListeners() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for _, l := range s.listeners {
		failed = errors.Join(failed, l.Close())
	}
	return failed
}

// closeConns closes every connection that was not handed over, side by side: each may drain for
// a moment.
func (s *Server) closeConns() {
	var closing sync.WaitGroup
	for _, c := range s.caps.open() {
		// The connection may end by itself at the same time; both are fine.
		closing.Go(func() { _ = c.Close() })
	}
	closing.Wait()
}

// SetCaps changes how many connections there may be, how many of a client, as in a Config with its defaults, and how many a client may make a
// minute; 0 stands for any number, which it is at first. Connections that are open stay.
func (s *Server) SetCaps(most, perClient, perMinute int) { s.caps.set(most, perClient, perMinute) }

// Stopping reports whether Shutdown was called: connections end with the answer under way.
func (s *Server) Stopping() bool { return s.stopped.Load() }

// Connections returns how many connections are open.
func (s *Server) Connections() int { return s.caps.count() }
