package proc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
)

const (
	// maxTranscriptBytes is how much of what a process says is kept.
	maxTranscriptBytes = 64 << 20
	// tailBytes is how much of it tells what went wrong.
	tailBytes = 4 << 10
)

// Transcript keeps the beginning of what a process says, to be read while it speaks.
type Transcript struct {
	mu    sync.Mutex
	text  []byte
	ended bool
	news  chan struct{} // closed at the next write, and at the end
}

// NewTranscript returns an empty one.
func NewTranscript() *Transcript { return &Transcript{news: make(chan struct{})} }

// Write keeps what there is room for.
func (t *Transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), maxTranscriptBytes-len(t.text))]...)
	close(t.news)
	t.news = make(chan struct{})
	return len(p), nil
}

// End says that nobody writes any more.
func (t *Transcript) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	close(t.news)
	t.news = make(chan struct{})
}

// String returns what is kept.
func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// Tail returns the end of what is kept.
func (t *Transcript) Tail() string {
	text := t.String()
	return text[max(0, len(text)-tailBytes):]
}

// Await waits until the text matches a pattern and returns the submatches. It is an error if that cannot come any more, or ctx ends.
func (t *Transcript) Await(ctx context.Context, pattern *regexp.Regexp) ([]string, error) {
	for {
		t.mu.Lock()
		m, ended, news := pattern.FindStringSubmatch(string(t.text)), t.ended, t.news
		t.mu.Unlock()
		err := ctx.Err()
		switch {
		case m != nil:
			return m, nil
		case ended:
			err = errors.New("it ended")
		}
		if err != nil {
			return nil, fmt.Errorf("nothing it says matches %q: %w", pattern, err)
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}
