package cluster

import "time"

const (
	// silence is for how long nothing must have been heard of a writer until another node claims the log.
	silence = 3 * time.Second
	// wholeWithin is how long ago a node must have held the whole log to claim it: it asks each lookInterval.
	wholeWithin = 2 * time.Second
)

// signs are what a node has heard of a writer: messages of the stream, and heartbeats. They only keep nodes from claiming in turns, and promise
// nothing: for a while two may think that they write.
type signs struct {
	newest time.Time // of a writer, or when the node began to listen; zero: the newest writer said that it writes no more
	epoch  uint64    // of the newest writer
}

// heard notes a sign of the writer of an epoch. What comes late of one that said that it writes no more is none.
func (s *signs) heard(epoch uint64) {
	if epoch != s.epoch || !s.newest.IsZero() {
		s.newest, s.epoch = time.Now(), max(epoch, s.epoch)
	}
}

// ended notes that the writer of an epoch said that it writes no more.
func (s *signs) ended(epoch uint64) {
	if epoch == s.epoch {
		s.newest = time.Time{}
	}
}

// listens notes that the node begins to listen: whatever was said before, it has not heard.
func (s *signs) listens() {
	if !s.newest.IsZero() {
		s.newest = time.Now()
	}
}

// hears notes what a node has heard of a writer.
func (l *Log) hears(note func(*signs)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	note(&l.signs)
}

// mayClaim reports whether this node is to become the writer: it held the whole log just now, and no writer was heard of for long, or nobody ever
// wrote.
func (l *Log) mayClaim() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isWhole := !l.known.IsZero() && time.Since(l.known) <= wholeWithin
	isSilent := l.signs.newest.IsZero() || time.Since(l.signs.newest) >= l.cluster.pace.silence
	return l.cluster.config.MayWrite && !l.resigned && isWhole && (isSilent || l.taken == 0)
}
