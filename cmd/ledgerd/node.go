package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/engine"
	"ledgerd/engine/cluster"
	"ledgerd/engine/cluster/exchange"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/source/file"
	"ledgerd/engine/source/upstream"
	"ledgerd/httpd"
	"ledgerd/httpd/accesslog"
	"ledgerd/httpd/apikey"
	"ledgerd/httpd/ops"
	"ledgerd/httpd/promtext"
	"ledgerd/httpd/rpc"
	"ledgerd/httpd/stream"
)

// stopTimeout bounds the sockets' and requests' part of a clean stop. The engine stops after
// them and may take 5 s for the last snapshot; all of it is to take less than 10 s.
const stopTimeout = 4 * time.Second

// socketsTimeout is how much of stopTimeout sockets may take: the rest is for requests under way.
const socketsTimeout = 3 * time.Second

// node is one running ledgerd.
type node struct {
	logger  *slog.Logger
	source  ledger.Source  // where blocks come from; nil: nowhere
	fetcher ledger.Fetcher // nil: nothing is fetched
	encryption
	keys        *apikey.Ring // nil: no keys are looked at
	dir         *datadir.Dir
	dataDir     string           // where it is
	cluster     *cluster.Cluster // nil: the node is alone
	exchange    *exchange.Exchange
	facts       *datadir.Facts // what a node of a cluster knows of its ledger by its source; nil without one
	reload      *reload
	anew        *anew
	hangUps     chan os.Signal
	engine      *engine.Engine
	hub         *stream.Hub
	public      *httpd.Server
	accessLog   *accesslog.Log // nil: there is none
	ops         *ops.Server    // nil without an operators' listener
	listener    net.Listener
	opsListener net.Listener
	rpc         *rpc.Door      // nil: the node does not speak JSON-RPC
	rpcPorts    []net.Listener // where it does
	fsyncs      promtext.Histogram
	deliveries  promtext.Histogram // from publication to a socket
	ingests     promtext.Histogram // from when the source showed something until it was visible
	stopping    atomic.Bool
	drain       time.Duration // between SIGTERM and the end of sockets
	memoryLimit int64         // in bytes
	cores       int           // that the node may use
}

// status says how the node is. One that is stopping is not healthy any more, so that
// balancers send nobody while the last answers go out.
func (n *node) status() ledger.NodeStatus {
	s := n.engine.Status()
	if n.cluster != nil {
		s.Peers += n.cluster.Peers()
		if s.Unhealthy != "" && !n.heldWholeLog() {
			s.Unhealthy += n.anew.trouble()
		}
		if s.Unhealthy != "" && !n.cluster.Connected() {
			s.Unhealthy += "; there is no connection to the shared log"
		}
	}
	switch {
	case n.stopping.Load():
		s.Unhealthy, s.Lags = "stopping", false
	case s.Lags:
		s.SlotsBehind = slotsBehind(n.source, n.engine.Head())
	}
	return s
}

// slotsBehind returns how far the node that a source follows is ahead of a head, unknown where it is not or the source does not tell.
func slotsBehind(from any, head *ledger.Head) (slots ledger.Opt[ledger.Slot]) {
	if s, ok := from.(interface{ Upstream() upstream.Snapshot }); ok && head != nil && head.HasSlot() {
		if at, newest := s.Upstream().UpstreamSlot, head.Tip(ledger.Processed).Slot; at > newest {
			return ledger.Some(at - newest)
		}
	}
	return slots
}

// publish tells everybody what became visible.
func (n *node) publish(p *ledger.Publication) {
	if !p.ReceivedAt.IsZero() {
		n.ingests.Observe(p.Head.Published.Sub(p.ReceivedAt))
	}
	n.hub.Publish(p)
}

// backup returns the node's data directory as a tar stream, and how long that is.
func (n *node) backup() (io.ReadCloser, int64, error) {
	b, err := n.engine.Backup()
	if err != nil {
		return nil, 0, err
	}
	n.logger.Info("sends a backup", "bytes", b.Bytes)
	return b, b.Bytes, nil
}

// progress says how far recovery is, then how far the reading of files of known size, and whether all of that is over.
func (n *node) progress() (p engine.Progress, over bool) {
	p = n.engine.Progress()
	if p.Phase != "" || n.engine.Stats().Recovery == 0 {
		return p, false
	}
	files, ok := n.source.(interface{ Progress() (read, size int64) })
	if !ok {
		return p, true
	}
	read, size := files.Progress()
	return engine.Progress{Phase: "reading the files", Done: uint64(read), Total: uint64(size)}, read >= size
}

// answers is the engine with the status of the whole node.
type answers struct {
	*engine.Engine
	node *node
}

// Status says how the node is.
func (a answers) Status() ledger.NodeStatus { return a.node.status() }

// run serves until ctx ends or a part fails, then stops the parts from the outside in:
// sockets, REST, and last the engine, so that no answer is cut off from its ledger.
func (n *node) run(ctx context.Context) error {
	engineCtx, stopEngine := context.WithCancel(context.Background())
	defer stopEngine()
	parts, failed := errgroup.WithContext(ctx)
	engineEnded, end := context.WithCancel(context.Background())
	parts.Go(func() error {
		defer end()
		return n.engine.Run(engineCtx)
	})
	if os.Getenv("GOGC") == "" { // else a person decides
		parts.Go(func() error { keepHeadroom(failed); return nil })
	}
	parts.Go(func() error { n.reload.follow(failed, n.hangUps); return nil })
	if n.accessLog != nil {
		parts.Go(func() error { n.accessLog.Run(engineCtx); return nil }) // the engine ends after the last answer
	}
	n.watchFence(parts, failed.Done())
	if n.cluster != nil {
		n.watchLead(parts, failed.Done())
	}
	parts.Go(func() error { return n.public.Serve(n.listener) })
	for _, l := range n.rpcPorts {
		parts.Go(func() error { return n.public.ServeDoor(l, n.rpc) })
	}
	if n.ops != nil {
		parts.Go(func() error { return n.ops.Serve(n.opsListener) })
	}
	parts.Go(func() error {
		<-failed.Done()
		n.stopping.Store(true)
		if ctx.Err() != nil { // else a part failed
			n.waitForBalancers(context.Cause(ctx), engineEnded)
		}
		n.stop(stopEngine)
		return nil
	})
	err := parts.Wait()
	if failure := n.engine.DiskFailure(); err == nil && failure != nil {
		err = fmt.Errorf("the disk failed: %w", failure)
	}
	n.logger.Info("stopped")
	return err
}

// closeListeners closes those that open has opened. It does nothing after a run, which has closed them.
func (n *node) closeListeners() {
	for _, l := range append([]net.Listener{n.listener, n.opsListener}, n.rpcPorts...) {
		if l != nil {
			l.Close()
		}
	}
}

// waitForBalancers goes on for the drain time, so that those who look at /readyz send nobody any more when sockets end. A person who
// presses Ctrl-C waits for nothing.
func (n *node) waitForBalancers(cause error, engineEnded context.Context) {
	if n.drain == 0 || strings.HasPrefix(cause.Error(), os.Interrupt.String()) {
		return
	}
	n.logger.Info("draining: /readyz and /api/health answer 503, all else goes on for a while", "drain", n.drain)
	select {
	case <-time.After(n.drain):
	case <-engineEnded.Done():
	}
}

func (n *node) stop(stopEngine context.CancelFunc) {
	n.logger.Info("stopping")
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	sockets, cancelSockets := context.WithTimeout(ctx, socketsTimeout)
	defer cancelSockets()
	if err := n.hub.Shutdown(sockets); err != nil {
		n.logger.Warn("sockets were cut off", "error", err)
	}
	if err := n.public.Shutdown(ctx); err != nil {
		n.logger.Warn("requests were cut off", "error", err)
	}
	if n.ops != nil {
		if err := n.ops.Shutdown(ctx); err != nil {
			n.logger.Warn("operators' requests were cut off", "error", err)
		}
	}
	stopEngine()
}

// stateAt is the first line of what /state answers.
type stateAt struct {
	Slot      uint64 `json:"slot"`
	Blockhash string `json:"blockhash"`
	StateHash string `json:"state_hash"`
}

// state returns the newest finalized block with the hash of the state at it, as a line of JSON, and if they are wanted a line of all accounts
// and mints each, as an export writes them.
func (n *node) state(accounts bool) (io.ReadCloser, int64, error) {
	h := n.engine.Head()
	if h == nil || !h.HasSlot() {
		return nil, 0, errors.New("there is no finalized block")
	}
	at := h.Tip(ledger.Finalized)
	line := fmt.Appendf(nil, "{\"slot\":%d,\"blockhash\":%q,\"state_hash\":%q}\n", at.Slot, at.Hash, h.FinalState)
	if !accounts {
		return io.NopCloser(bytes.NewReader(line)), int64(len(line)), nil
	}
	all, release, err := n.engine.State(h)
	if err != nil {
		return nil, 0, err
	}
	lines := &stateLines{rest: line, release: release}
	lines.next, lines.stop = iter.Pull(all)
	return lines, -1, nil
}

// stateLines are written as they are read.
type stateLines struct {
	next          func() (*ledger.BaseState, bool)
	stop, release func()
	text, rest    []byte
}

// stateTextBytes is how much is written at once, but for its last line.
const stateTextBytes = 64 << 10

func (l *stateLines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		for l.text = l.text[:0]; len(l.text) < stateTextBytes; {
			piece, more := l.next()
			if !more {
				break
			}
			l.text = file.AppendEventLine(l.text, piece)
		}
		l.rest = l.text
	}
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *stateLines) Close() error {
	l.stop()
	l.release()
	return nil
}
