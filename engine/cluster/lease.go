package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	renewEvery = time.Second
	// leaseLength is for how long a key must not have changed, by the clock of who watches it, until it may be taken, and for how
	// long its holder counts on it after a renewal.
	leaseLength = 3 * time.Second
	// glanceEvery is between two looks at a key.
	glanceEvery = 250 * time.Millisecond
	// releasePatience bounds giving a lease up on the way out. Without it the next holder waits until it ran out.
	releasePatience = time.Second
	// abstention is for how long a node leaves a lease to the others after it could not do what it had it for.
	abstention = 30 * time.Second
)

// lease is a key that one node holds: it renews it, or waits until nobody does. It promises nothing: for a while two may
// think that they hold it.
type lease struct {
	cluster *Cluster
	key     string
	nonce   string             // of this process
	may     func() bool        // whether it is this node's to take; nil: always
	end     context.CancelFunc // ends run

	// What follows is run's alone.
	kv       jetstream.KeyValue
	revision uint64    // of the newest value seen
	changed  time.Time // when that was seen first
	free     bool      // its holder gave it up

	mu       sync.Mutex
	has      bool      // nobody else was seen to have it since it was taken
	renewed  time.Time // when the newest renewal that succeeded began
	lost     chan struct{}
	taken    func()    // called, on run's goroutine, when it is taken
	holder   string    // the node that was seen to hold it
	resigned bool      // it is given up for good
	abstains time.Time // it is given up until then
}

// leaseValue is what the key holds. The time is for people.
type leaseValue struct {
	Node  string    `json:"node"` // "": nobody holds it
	Nonce string    `json:"nonce,omitempty"`
	Time  time.Time `json:"time"`
}

func (c *Cluster) newLease(key string) *lease {
	nonce := make([]byte, 8)
	rand.Read(nonce) // never fails
	return &lease{cluster: c, key: key, nonce: hex.EncodeToString(nonce), lost: make(chan struct{})}
}

// start lets the lease run until the cluster is closed or it is given up for good.
func (l *lease) start() {
	var ctx context.Context
	ctx, l.end = context.WithCancel(l.cluster.ctx)
	l.cluster.running.Go(func() { l.run(ctx) })
}

// resign gives the lease up for good. It is not held any more when resign returns; that others know of it takes a moment.
func (l *lease) resign() {
	l.mu.Lock()
	l.resigned = true
	l.mu.Unlock()
	if l.end != nil {
		l.end()
	}
}

// abstain gives the lease up for a while, so that another node may do what this one failed to.
func (l *lease) abstain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abstains = time.Now().Add(abstention)
}

// wanted reports whether this node would have the lease at all.
func (l *lease) wanted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wantedLocked()
}

func (l *lease) wantedLocked() bool { return !l.resigned && !time.Now().Before(l.abstains) }

// held reports whether this node holds the lease, as far as it can know.
func (l *lease) held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.has && l.wantedLocked() && time.Since(l.renewed) < leaseLength
}

// state returns a channel that is closed when the lease that is held now is lost to another, whether it is held at all, be it
// without a renewal, and when the newest renewal began.
func (l *lease) state() (lost <-chan struct{}, has bool, renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.has, l.renewed
}

// onTaken sets what is called when the lease is taken.
func (l *lease) onTaken(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = f
}

// run takes the lease when it can and renews it, until ctx ends; then it gives it up.
func (l *lease) run(ctx context.Context) {
	ticker := time.NewTicker(glanceEvery)
	defer ticker.Stop()
	defer l.release()
	what := "holding the lease of " + l.key
	for {
		if err := l.step(ctx); err == nil {
			l.cluster.clear(what)
		} else if ctx.Err() == nil {
			l.cluster.troubled(what, err)
			l.kv = nil // it may have to be made
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// step does what is due.
func (l *lease) step(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestPatience)
	defer cancel()
	if l.kv == nil {
		kv, err := l.cluster.bucket(ctx)
		if err != nil {
			return err
		}
		l.kv = kv
	}
	_, has, renewed := l.state()
	switch {
	case !l.wanted():
		l.release()
		return nil
	case has:
		if time.Since(renewed) < renewEvery {
			return nil
		}
		return l.renew(ctx)
	}
	return l.watch(ctx)
}

// bucket returns the bucket of the leases, which it makes if need be.
func (c *Cluster) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	kv, err := c.js.KeyValue(ctx, c.config.leases())
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return kv, err
	}
	return c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
		Bucket: c.config.leases(), Description: "who writes the log, and who makes snapshots", History: 1,
		Storage: jetstream.FileStorage, Replicas: c.config.Replicas,
	})
}

// watch looks whether the lease may be taken, and takes it.
func (l *lease) watch(ctx context.Context) error {
	entry, err := l.kv.Get(ctx, l.key)
	mayTake := l.may == nil || l.may()
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		if !mayTake {
			return nil
		}
		return l.take(ctx, 0)
	case err != nil:
		return err
	}
	if l.see(entry) {
		l.hold(time.Time{}) // it was taken, only the answer was lost; it counts once it was renewed
		return nil
	}
	if mayTake && (l.free || time.Since(l.changed) >= leaseLength) {
		return l.take(ctx, l.revision)
	}
	return nil
}

// see takes note of the key's value.
func (l *lease) see(entry jetstream.KeyValueEntry) (mine bool) {
	var v leaseValue
	_ = json.Unmarshal(entry.Value(), &v) // what cannot be read is held by nobody known, until it ran out
	if entry.Revision() != l.revision {
		l.revision, l.changed = entry.Revision(), time.Now()
	}
	l.free = v.Node == "" && v.Nonce == ""
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = v.Node
	return v.Nonce == l.nonce
}

func (l *lease) value() []byte {
	b, err := json.Marshal(leaseValue{l.cluster.config.NodeID, l.nonce, time.Now().UTC()})
	if err != nil {
		panic(err) // it is all strings
	}
	return b
}

// take replaces the value of a revision, 0 where there is none.
func (l *lease) take(ctx context.Context, revision uint64) error {
	begun := time.Now()
	var after uint64
	var err error
	if revision == 0 {
		after, err = l.kv.Create(ctx, l.key, l.value()) // also where it was deleted, which leaves a revision behind
	} else {
		after, err = l.kv.Update(ctx, l.key, l.value(), revision)
	}
	if err != nil {
		// Somebody else was faster, or the bucket is led by nobody at the moment: then its holder could not renew it
		// either, and is to have the time to.
		l.changed, l.free = time.Now(), false
		if errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists) {
			return nil
		}
		return fmt.Errorf("cannot take it: %w", err)
	}
	l.revision, l.changed, l.free = after, time.Now(), false
	l.hold(begun)
	return nil
}

// hold notes that this node has the lease, renewed last at a time.
func (l *lease) hold(renewed time.Time) {
	l.mu.Lock()
	if !l.has { // else it was taken anew where somebody deleted it, and whoever waits for its loss still does
		l.lost = make(chan struct{})
	}
	l.has, l.renewed, l.holder = true, renewed, l.cluster.config.NodeID
	taken := l.taken
	l.mu.Unlock()
	l.cluster.logger.Info("holds a lease", "lease", l.key)
	if taken != nil {
		taken()
	}
}

// renew replaces the value by a newer one of this node.
func (l *lease) renew(ctx context.Context) error {
	begun := time.Now()
	after, err := l.kv.Update(ctx, l.key, l.value(), l.revision)
	if err == nil {
		l.revision = after
		l.mu.Lock()
		l.renewed = begun
		l.mu.Unlock()
		return nil
	}
	if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return fmt.Errorf("cannot renew it: %w", err)
	}
	entry, err := l.kv.Get(ctx, l.key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return l.take(ctx, 0) // the bucket was made anew
	}
	if err != nil {
		return fmt.Errorf("cannot see who holds it: %w", err)
	}
	if entry.Revision() <= l.revision && l.held() {
		return errors.New("cannot see who holds it: an old copy answers")
	}
	if l.see(entry) {
		return nil // the renewal before succeeded, only its answer was lost: the next one follows at once
	}
	l.mu.Lock()
	l.has = false
	close(l.lost)
	holder := l.holder
	l.mu.Unlock()
	l.cluster.stats.leaseLosses.Add(1)
	l.cluster.logger.Warn("lost a lease", "lease", l.key, "to", holder)
	return nil
}

// release gives the lease up, so that another node need not wait until it ran out.
func (l *lease) release() {
	if _, has, _ := l.state(); !has {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releasePatience)
	defer cancel()
	b, err := json.Marshal(leaseValue{Time: time.Now().UTC()})
	if err != nil {
		panic(err)
	}
	if l.kv != nil {
		_, _ = l.kv.Update(ctx, l.key, b, l.revision) // it runs out where this fails
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.has = false
}
