package proc

import "sync"

// maxTranscriptBytes is how much of what a process says is kept.
const maxTranscriptBytes = 64 << 10

// transcript keeps the beginning of what a process says.
type transcript struct {
	written chan struct{} // has a token when something was written since it was taken

	mu   sync.Mutex
	text []byte
}

func newTranscript() *transcript { return &transcript{written: make(chan struct{}, 1)} }

// Write keeps what there is room for.
func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.text = append(t.text, p[:min(len(p), maxTranscriptBytes-len(t.text))]...)
	t.mu.Unlock()
	select {
	case t.written <- struct{}{}:
	default:
	}
	return len(p), nil
}

// String returns what is kept.
func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
