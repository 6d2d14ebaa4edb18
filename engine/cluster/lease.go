package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"ledgerd/engine/ledger"
)

const (
	renewEvery = time.Second
	leaseBytes = 1 << 20 // far more than the bucket of leases holds
	// leaseLength is for how long a key must not have changed, by the clock of who watches it, until it may be taken, and for how
	// long its holder counts on it after a renewal.
	leaseLength = 3 * time.Second
	// pollInterval is between two looks at a key.
	pollInterval = 250 * time.Millisecond
	// claimPatience is for how long a node that holds the lease and the whole log may not come to write: its claim may be refused, as where its
	// user may not write to the log. It is more than the ways there and back that a claim takes, and leaves others leaseLength to be faster next.
	claimPatience = 10 * time.Second
	// releaseTimeout bounds giving a lease up on the way out. Without it the next holder waits until it ran out.
	releaseTimeout = time.Second
)

// leaseKey is what the lease to write the log is called.
const leaseKey = "ingester"

// lease is a key that one node holds: it renews it, or waits until nobody does. It promises nothing: for a while two may
// think that they hold it.
type lease struct {
	cluster *Cluster
	isWhole func(within time.Duration) bool // whether the node held the whole log so short a while ago, without which it writes nothing

	// What follows is run's alone.
	kv       jetstream.KeyValue
	revision uint64    // of the newest value seen
	changed  time.Time // when that was seen first
	taken    time.Time // when this node took the lease
	after    time.Time // it does not take it before

	now   ledger.Guarded[holding]
	wrote chan struct{} // one is in it after this node wrote the key: who waits to hold the lease looks again
}

// holding is what a node knows of its lease.
type holding struct {
	has      bool          // nobody else was seen to have it since it was taken, be it without a renewal
	renewed  time.Time     // when the newest renewal that succeeded began
	lost     chan struct{} // closed when another node has it, or may have it soon; nil before it was held
	resigned bool          // it is given up for good
}

// leaseValue is what the key holds. The time is for people.
type leaseValue struct {
	Node  string    `json:"node"`            // "": nobody holds it
	Nonce string    `json:"nonce,omitempty"` // of the process
	Time  time.Time `json:"time"`
}

// resign gives the lease up for good, so that another node may do what this one failed to. It is not held any more when
// resign returns; that others know of it takes up to pollInterval.
func (l *lease) resign() { l.now.Update(func(h *holding) { h.resigned = true }) }

// held reports whether this node holds the lease, as far as it can know.
func (l *lease) held() bool {
	h := l.now.Load()
	return h.has && !h.resigned && time.Since(h.renewed) < leaseLength
}

// run takes the lease when it can and renews it, until the cluster is closed; then it gives it up.
func (l *lease) run() {
	ctx := l.cluster.ctx
	defer l.release()
	what := "holding the lease of " + leaseKey
	for {
		if err := l.step(ctx); err == nil {
			l.cluster.clearFault(what, true)
		} else if ctx.Err() == nil {
			l.cluster.setFault(what, err)
			l.kv = nil // it may have to be made
		}
		if l.cluster.sleep(ctx, pollInterval) != nil {
			return
		}
	}
}

// step does what is due.
func (l *lease) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if l.kv == nil {
		kv, err := l.cluster.Bucket(ctx, "lease", "who writes the log", leaseBytes)
		if err != nil {
			return err
		}
		l.kv = kv
	}
	h := l.now.Load()
	waits := h.has && Role(l.cluster.stats.role.Load()) != Writer // for its claim to be stored
	switch {
	case h.resigned:
		l.release()
		return nil
	case waits && !l.isWhole(wholeWithin+leaseLength):
		l.letGo()
		return nil
	case waits && time.Since(l.taken) >= claimPatience:
		l.cluster.logger.Warn("gives a lease up: the stream takes no claim of this node, may its user write to it?", "lease", leaseKey)
		l.after = time.Now().Add(leaseLength)
		l.letGo()
		return nil
	case h.has && time.Since(h.renewed) < renewEvery:
		return nil
	case h.has:
		if err := l.write(ctx, l.revision); !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			return err
		}
	}
	return l.look(ctx, h.has)
}

// look takes the lease where it may be taken, and notes its loss.
func (l *lease) look(ctx context.Context, has bool) error {
	state, holder, err := l.read(ctx, has)
	switch {
	case err != nil:
		return err
	case state == leaseMine:
		if !has { // only the answer was lost when it was taken; it counts once it was renewed
			l.hold(time.Time{})
		}
	case has && state != leaseGone:
		l.lose(holder)
	case has, state != leaseTheirs && l.isWhole(wholeWithin) && time.Now().After(l.after):
		return l.take(ctx)
	}
	return nil
}

// leaseState is what the key says.
type leaseState uint8

const (
	leaseGone   leaseState = iota // there is no key, as where the bucket was made anew
	leaseMine                     // this process holds it
	leaseTheirs                   // another one does
	leaseFree                     // it was given up, or another one did and has not renewed it in time
)

// read looks who holds the lease.
func (l *lease) read(ctx context.Context, has bool) (state leaseState, holder string, err error) {
	entry, err := l.kv.Get(ctx, leaseKey)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		l.revision = 0
		return leaseGone, "", nil
	case err != nil:
		return 0, "", fmt.Errorf("cannot see who holds it: %w", err)
	case has && entry.Revision() <= l.revision && l.held():
		return 0, "", errors.New("cannot see who holds it: an old copy answers")
	}
	if entry.Revision() != l.revision {
		l.revision, l.changed = entry.Revision(), time.Now()
	}
	var v leaseValue
	if json.Unmarshal(entry.Value(), &v) != nil {
		v.Node = "unknown" // until it ran out
	}
	switch {
	case v.Nonce == l.cluster.process:
		return leaseMine, "", nil
	case v.Node == "" && v.Nonce == "", time.Since(l.changed) >= leaseLength:
		return leaseFree, v.Node, nil
	}
	return leaseTheirs, v.Node, nil
}

// take writes the key where nobody else was faster.
func (l *lease) take(ctx context.Context) error {
	err := l.write(ctx, l.revision)
	if err != nil {
		// Somebody else was faster, or the bucket is led by nobody at the moment: then its holder could not renew it
		// either, and is to have the time to.
		l.changed = time.Now()
	}
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return err
}

func (v leaseValue) encode() []byte {
	v.Time = time.Now().UTC()
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is all strings
	}
	return b
}

// write replaces the value of a revision, 0 where there is none, by one of this node, which has the lease then.
func (l *lease) write(ctx context.Context, revision uint64) error {
	begun, value := time.Now(), leaseValue{Node: l.cluster.config.NodeID, Nonce: l.cluster.process}.encode()
	var after uint64
	var err error
	if revision == 0 {
		after, err = l.kv.Create(ctx, leaseKey, value) // also where it was deleted, which leaves a revision
	} else {
		after, err = l.kv.Update(ctx, leaseKey, value, revision)
	}
	if err != nil {
		return fmt.Errorf("cannot write who holds it: %w", err)
	}
	l.revision, l.changed = after, time.Now()
	l.hold(begun)
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return nil
}

// hold notes that this node has the lease, renewed last at a time.
func (l *lease) hold(renewed time.Time) {
	l.now.Update(func(h *holding) {
		if !h.has { // else whoever waits for its loss still does
			h.lost, l.taken = make(chan struct{}), time.Now()
			l.cluster.logger.Info("holds a lease", "lease", leaseKey)
		}
		h.has, h.renewed = true, renewed
	})
}

// lose notes that another node has the lease.
func (l *lease) lose(holder string) {
	l.end()
	l.cluster.stats.leaseLosses.Add(1)
	l.cluster.logger.Warn("lost a lease", "lease", leaseKey, "to", holder)
}

// end notes that this node does not have the lease any more, and tells who waits for its loss.
func (l *lease) end() {
	l.now.Update(func(h *holding) {
		h.has = false
		close(h.lost)
	})
}

// release gives the lease up on the way out, of which nobody has to be told.
func (l *lease) release() {
	if l.now.Load().has {
		l.free()
		l.now.Update(func(h *holding) { h.has = false })
	}
}

// letGo gives the lease up where this node does not come to write, and nobody else would: first to itself, so that who becomes the writer
// meanwhile learns of it.
func (l *lease) letGo() {
	l.end()
	l.free()
}

// free lets another node take the lease, which then need not wait until it ran out.
func (l *lease) free() {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if l.kv != nil {
		_, _ = l.kv.Update(ctx, leaseKey, leaseValue{}.encode(), l.revision) // it runs out where this fails
	}
}
