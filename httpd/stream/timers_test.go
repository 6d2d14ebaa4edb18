package stream

import "time"

// late is by how much ticks may come later than the interface says of time.
const late = time.Second

// elapsed fails unless so much time has passed since, or a little more.
func (n *node) elapsed(what string, since time.Time, want, slack time.Duration) {
	n.Helper()
	if got := time.Since(since); got < want || got > want+slack {
		n.Errorf("%s after %v, want %v to %v", what, got, want, want+slack)
	}
}
