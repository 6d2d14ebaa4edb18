package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/bench/wsclient"
	"ledgerd/engine/ledger"
)

// rigTimeout bounds every wait for what must happen at once on a machine that is not loaded:
// that a block is published, and that a ping is answered.
const rigTimeout = time.Minute

// rig is a ledgerd that follows a made-up ledger, and somebody who sees its blocks appear.
type rig struct {
	*proc.Server
	feed *feed.Feed
	*probe
}

// startRig starts a server that has a block synced before anybody sees it, and takes no
// snapshot in the middle of a measurement.
func startRig(ctx context.Context, env *Env, c feed.Config, args ...string) (r *rig, err error) {
	r = new(rig)
	args = append([]string{"--wal-sync", "always", "--snapshot-interval", "0"}, args...)
	if r.Server, err = proc.Start(ctx, env.Ledgerd, args, proc.Options{Dir: env.Dir}); err != nil {
		return nil, err
	}
	if r.feed, err = feed.New(r.Feed(), c); err == nil {
		err = r.Ready(ctx)
	}
	if err == nil {
		r.probe, err = newProbe(ctx, r.StreamURL(), r.feed)
	}
	if err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}

// Stop ends the server and whoever watched it.
func (r *rig) Stop() error {
	r.probe.close() // first, so that its end is no news
	return r.Server.Stop()
}

// Kill does the same without asking, if it has not been done. It is for the way out after an
// error.
func (r *rig) Kill() {
	if r.probe != nil {
		r.probe.close()
	}
	r.Server.Kill()
}

// pace has so many blocks published, one an interval, and waits for the last.
func (r *rig) pace(ctx context.Context, interval time.Duration, blocks int) error {
	newest, err := r.feed.Pace(ctx, interval, blocks)
	return errors.Join(err, r.await(ctx, newest))
}

// whileWriting does something while blocks are published, one an interval.
func (r *rig) whileWriting(ctx context.Context, interval time.Duration, do func() error) error {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	wrote := make(chan error, 1)
	go func() {
		_, err := r.feed.Pace(writing, interval, math.MaxInt)
		wrote <- err
	}()
	err := do()
	stop()
	return errors.Join(err, <-wrote)
}

// spent is the processors' time that was used until a moment.
type spent struct {
	at           time.Time
	server, load time.Duration
}

func (r *rig) spent() (s spent, err error) {
	server, err := cpuOf(r.Pid())
	if err != nil {
		return s, err
	}
	load, err := cpuOf(os.Getpid())
	return spent{time.Now(), server, load}, err
}

// since returns what was used since an earlier moment, and how long ago that is.
func (s spent) since(earlier spent) (server, load, took time.Duration) {
	return s.server - earlier.server, s.load - earlier.load, s.at.Sub(earlier.at)
}

// addCores notes how many processors were used on average.
func (s spent) addCores(row *Row, earlier spent) {
	server, load, took := s.since(earlier)
	row.Add("CPU of the server", "cores", server.Seconds()/took.Seconds())
	row.Add("CPU of the load", "cores", load.Seconds()/took.Seconds())
}

// probe is a subscriber of no account, who is told where each block ends, and so when it is
// published.
type probe struct {
	conn   *wsclient.Conn
	ledger *feed.Feed
	news   chan struct{} // has a token when a block was published since it was taken
	done   chan struct{} // closed when nothing is heard any more
	newest atomic.Uint64 // slot
	ended  error         // why, once done is closed

	mu      sync.Mutex
	latency *Histogram // of publications since they were asked for, from when the block was due
}

func newProbe(ctx context.Context, address string, ledger *feed.Feed) (*probe, error) {
	conn, err := wsclient.Dial(ctx, address+"?mode=none&extended=true", wsclient.Options{})
	if err != nil {
		return nil, err
	}
	p := &probe{conn: conn, ledger: ledger, news: make(chan struct{}, 1), done: make(chan struct{}), latency: NewHistogram()}
	go func() {
		defer close(p.done)
		p.ended = p.listen()
	}()
	return p, p.ask(ctx)
}

// ask waits until the server knows the probe, so that the next block is told.
func (p *probe) ask(ctx context.Context) error {
	if err := p.conn.WriteText([]byte(`{"type":"ping","id":1}`)); err != nil {
		return err
	}
	return p.await(ctx, p.ledger.Newest())
}

func (p *probe) listen() error {
	var state wsclient.State
	for {
		f, err := p.conn.Next()
		if err != nil {
			return err
		}
		now, ends := time.Now(), state.SlotEnds
		if err := state.Apply(f.Payload); err != nil {
			return err
		}
		slot := state.Ended
		if state.SlotEnds > ends {
			p.mu.Lock()
			p.latency.Record(now.Sub(p.ledger.Due(ledger.Slot(slot))))
			p.mu.Unlock()
		} else if slot, err = pongSlot(f.Payload); err != nil {
			return err
		}
		p.newest.Store(max(p.newest.Load(), slot))
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
}

// await waits until a slot is published, to sockets too. One goroutine at a time may wait.
func (p *probe) await(ctx context.Context, slot ledger.Slot) error {
	late := time.NewTimer(rigTimeout)
	defer late.Stop()
	for p.newest.Load() < uint64(slot) {
		select {
		case <-p.news:
			late.Reset(rigTimeout)
		case <-p.done:
			return fmt.Errorf("who waits for block %d was dropped: %w", slot, p.ended)
		case <-late.C:
			return fmt.Errorf("block %d is not published, only %d, and nothing for %v", slot, p.newest.Load(), rigTimeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// publications returns how long after they were due blocks were published, since it was asked
// last.
func (p *probe) publications() *Histogram {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.latency
	p.latency = NewHistogram()
	return h
}

func (p *probe) close() {
	_ = p.conn.Close() // perhaps again
	<-p.done
}

// askPong says ping and waits for the answer. From then on the server knows the subscriber, and
// tells it all that is published; the answer to the handshake may be a moment early for that.
func askPong(conn *wsclient.Conn) error {
	_ = conn.NetConn().SetDeadline(time.Now().Add(rigTimeout)) // a socket without one fails
	defer func() { _ = conn.NetConn().SetDeadline(time.Time{}) }()
	if err := conn.WriteText([]byte(`{"type":"ping","id":1}`)); err != nil {
		return err
	}
	for {
		frame, err := conn.Next()
		if err != nil {
			return fmt.Errorf("a ping is not answered: %w", err)
		}
		if slot, err := pongSlot(frame.Payload); err != nil || slot != 0 {
			return err
		}
	}
}

// socketRoom returns how many of so many sockets this process can hold beside what it has open,
// and a note if that is fewer. The server, which is started by it, can hold as many.
func socketRoom(want int) (room int, note string, err error) {
	const others = 500 // files of the server and of this process
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, "", fmt.Errorf("cannot read how many files may be open: %w", err)
	}
	if room = max(1, int(min(limit.Max, 1<<30))-others); room >= want {
		return want, "", nil
	}
	return room, fmt.Sprintf("%d connections instead of %d: no more than %d files may be open here", room, want, limit.Max), nil
}
