package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"ledgerd/bench/feed"
	"ledgerd/bench/wsclient"
	"ledgerd/engine/ledger"
)

const (
	// groupDials is how many subscribers connect at once.
	groupDials = 64
	// groupAddresses is how many addresses of this machine they come from.
	groupAddresses = 8
)

// group is subscribers of literal frames. Each checks that it is told exactly what it must be.
type group struct {
	ledger  *feed.Feed
	members []*groupMember
	reading sync.WaitGroup
	timed   atomic.Pointer[timing] // nil: nobody asks how long frames took

	mu   sync.Mutex
	sums map[ledger.Slot]uint64 // of the keys of a block
}

// timing is how long frames took from when their block was due.
type timing struct {
	mu      sync.Mutex
	latency *Histogram
}

// record counts frames of a slot.
func (t *timing) record(took time.Duration, frames int) {
	t.mu.Lock()
	t.latency.RecordMany(took, frames)
	t.mu.Unlock()
}

// join lets so many subscribers in. wants returns the indexes of the accounts that one
// names; none: it wants everything. Nothing is published meanwhile.
func join(ctx context.Context, r *rig, count int, wants func(i int) []int) (*group, error) {
	g := &group{ledger: r.feed, members: make([]*groupMember, count), sums: make(map[ledger.Slot]uint64)}
	dials, dialling := errgroup.WithContext(ctx)
	dials.SetLimit(groupDials)
	for i := range count {
		dials.Go(func() (err error) {
			g.members[i], err = g.admit(dialling, i, r.StreamURL(), wants(i))
			return err
		})
	}
	err := dials.Wait()
	if err == nil {
		err = g.settle(ctx) // all are known to the server then
	}
	if err != nil {
		g.leave()
		return nil, fmt.Errorf("cannot let %d subscribers in: %w", count, err)
	}
	return g, nil
}

func (g *group) admit(ctx context.Context, i int, address string, keys []int) (*groupMember, error) {
	newest := g.ledger.Newest()
	m := &groupMember{group: g, slot: newest, checked: newest, answers: make(chan answer, 1), gone: make(chan struct{})}
	for n, index := range keys {
		if n == 0 {
			m.keys = make(map[string]namedKey, len(keys))
			address += "?pubkeys="
		}
		key := feed.Key(index).String()
		m.keys[key] = namedKey{index, newest}
		address += strings.Repeat(",", min(n, 1)) + key
	}
	local := netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i%groupAddresses)})
	conn, err := wsclient.Dial(ctx, address, wsclient.Options{Local: local})
	if err != nil {
		return nil, err
	}
	m.conn = conn
	g.reading.Go(func() {
		m.ended = conn.Drain(m.hear)
		close(m.gone)
	})
	return m, nil
}

// time counts how long the frames from here on take.
func (g *group) time() *timing {
	t := &timing{latency: NewHistogram()}
	g.timed.Store(t)
	return t
}

// settle waits until everybody has heard all that was published before the call, and fails if
// that was not exactly what it had to be.
func (g *group) settle(ctx context.Context) error {
	newest := g.ledger.Newest()
	for i, m := range g.members {
		if err := m.conn.WriteText([]byte(`{"type":"ping","id":1}`)); err != nil {
			return fmt.Errorf("subscriber %d was dropped: %w", i, errors.Join(err, m.wait()))
		}
	}
	late := time.NewTimer(rigTimeout)
	defer late.Stop()
	for i, m := range g.members {
		select {
		case a := <-m.answers:
			if a.fault == nil && a.slot != newest {
				a.fault = fmt.Errorf("the server says it has published slot %d, not %d", a.slot, newest)
			}
			if a.fault != nil {
				return fmt.Errorf("subscriber %d: %w", i, a.fault)
			}
		case <-m.gone:
			return fmt.Errorf("subscriber %d was dropped: %w", i, m.ended)
		case <-late.C:
			return fmt.Errorf("subscriber %d has no answer to a ping after %v", i, rigTimeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// leave ends all subscribers.
func (g *group) leave() {
	for _, m := range g.members {
		if m != nil {
			_ = m.conn.Close() // the server may have been first
		}
	}
	g.reading.Wait()
}

// sum returns what the keys of a block add up to.
func (g *group) sum(s ledger.Slot) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum, ok := g.sums[s]
	if !ok {
		for index := range g.ledger.Config().Indexes(s) {
			sum += keySum([]byte(feed.Key(index).String()))
		}
		g.sums[s] = sum
	}
	return sum
}

// keySum returns a number for a key in base58; those of the keys of a block add up to the same in
// any order, and to something else with another key.
func keySum(key []byte) uint64 {
	if len(key) < 8 {
		return 0 // no key
	}
	return binary.LittleEndian.Uint64(key)
}
