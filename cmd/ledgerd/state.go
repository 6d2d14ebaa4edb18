package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/file"
)

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
