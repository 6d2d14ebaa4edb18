package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/wsclient"
	"ledgerd/engine/ledger"
)

// punctual are subscribers of everything who note how late each frame comes: the time from
// when its block was due to when the frame was read.
type punctual struct {
	feed      *feed.Feed
	first     ledger.Slot // they hear of all blocks after this one
	conns     []*wsclient.Conn
	frames    []atomic.Int64 // by subscriber
	listening sync.WaitGroup
	phase     atomic.Pointer[phase] // who is counted now; nil: nobody

	mu    sync.Mutex
	ended error // why the first of them hears no more
}

// newPunctual connects the subscribers. Nothing is published meanwhile.
func newPunctual(ctx context.Context, url string, f *feed.Feed, count int) (*punctual, error) {
	p := &punctual{feed: f, first: f.Newest(), frames: make([]atomic.Int64, count)}
	for i := range count {
		c, err := wsclient.Dial(ctx, url, wsclient.Options{})
		if err != nil {
			p.close()
			return nil, err
		}
		p.conns = append(p.conns, c)
		if err := askPong(c); err != nil { // the server may not know it yet
			p.close()
			return nil, err
		}
		p.listening.Go(func() { p.listen(i, c) })
	}
	return p, nil
}

func (p *punctual) listen(i int, c *wsclient.Conn) {
	err := c.Drain(func(batch []byte, frames int) {
		now := time.Now()
		p.frames[i].Add(int64(frames))
		// All frames of a batch came at once. Where a block ends in it, the later frames count
		// as late as the earlier ones, which is too late if anything.
		if _, slot, ok := wsclient.ParseUpdate(firstPayload(batch)); ok {
			if ph := p.phase.Load(); ph != nil {
				ph.record(i, now, p.feed.Due(ledger.Slot(slot)), frames)
			}
		}
	})
	if !errors.Is(err, net.ErrClosed) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended == nil {
			p.ended = fmt.Errorf("subscriber %d hears no more: %w", i, err)
		}
	}
}

// firstPayload returns the payload of the first frame of a batch, with all that follows it.
func firstPayload(batch []byte) []byte {
	if batch[1] == 126 {
		return batch[4:]
	}
	return batch[2:]
}

// err returns why one of them hears no more, if that is so.
func (p *punctual) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// during counts the blocks that become due while do runs, and waits until everybody has heard
// them.
func (p *punctual) during(ctx context.Context, ph *phase, do func()) error {
	began := time.Now()
	ph.begin.Store(&began)
	ph.end.Store(nil)
	p.phase.Store(ph)
	defer p.phase.Store(nil)
	do()
	ended := time.Now()
	ph.end.Store(&ended)
	return p.heard(ctx, p.feed.Newest()+1) // which may be written just now
}

// heard waits until everybody has heard all blocks up to a slot.
func (p *punctual) heard(ctx context.Context, slot ledger.Slot) error {
	const patience = 30 * time.Second
	frames := int64(slot-p.first) * int64(p.feed.Config().Updates)
	for until := time.Now().Add(patience); ; {
		least := p.frames[0].Load()
		for i := range p.frames {
			least = min(least, p.frames[i].Load())
		}
		switch {
		case least >= frames:
			return nil
		case p.err() != nil:
			return p.err()
		case time.Now().After(until):
			return fmt.Errorf("a subscriber heard %d frames of %d", least, frames)
		}
		if !pause(ctx, 5*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// complete waits until everybody has heard everything, once no more is written, and returns
// an error if somebody does not, or hears more.
func (p *punctual) complete(ctx context.Context) error {
	newest := p.feed.Newest()
	if err := p.heard(ctx, newest); err != nil {
		return err
	}
	for i := range p.frames {
		if got, want := p.frames[i].Load(), int64(newest-p.first)*int64(p.feed.Config().Updates); got != want {
			return fmt.Errorf("subscriber %d heard %d frames, not %d", i, got, want)
		}
	}
	return nil
}

// close ends all of them.
func (p *punctual) close() {
	for _, c := range p.conns {
		_ = c.Close() // the server may have been first
	}
	p.listening.Wait()
}

// phase counts latencies of blocks that were due while it lasted. It may last several times.
type phase struct {
	begin, end atomic.Pointer[time.Time] // end is nil while it lasts
	shares     [16]phaseShare            // so that subscribers seldom wait for each other
}

type phaseShare struct {
	mu     sync.Mutex
	counts *Histogram
}

func newPhase() *phase {
	p := new(phase)
	for i := range p.shares {
		p.shares[i].counts = NewHistogram()
	}
	return p
}

// record counts frames of a block that was due at some time.
func (p *phase) record(reader int, now, due time.Time, frames int) {
	end := p.end.Load()
	if due.Before(*p.begin.Load()) || end != nil && due.After(*end) {
		return
	}
	share := &p.shares[reader%len(p.shares)]
	share.mu.Lock()
	defer share.mu.Unlock()
	share.counts.RecordMany(now.Sub(due), frames)
}

// merged returns all that was counted.
func (p *phase) merged() *Histogram {
	all := NewHistogram()
	for i := range p.shares {
		p.shares[i].mu.Lock()
		all.Merge(p.shares[i].counts)
		p.shares[i].mu.Unlock()
	}
	return all
}
