package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"ledgerd/cmd/internal/call"
	"ledgerd/engine/ledger/wait"
)

type diffCommand struct {
	A    string        `arg:"" help:"The operators' listener of a node: http://HOST:PORT."`
	B    string        `arg:"" help:"That of another one."`
	Wait time.Duration `help:"How long to wait until both have one block finalized." default:"1m" env:"-"`
	call.Flags
	silence time.Duration // askOperators'
}

// errDiffer says that the lines before tell how two nodes differ.
var errDiffer = errors.New("the nodes differ")

// askAgain is how soon a node is asked whether it has finalized another block.
const askAgain = 50 * time.Millisecond

// heldFor is how long the node that is ahead holds its state for the other one. A node cuts off who takes nothing for half a minute.
const heldFor = 20 * time.Second

// maxStateLine is above the longest line of an account: data of 10 MiB in base64.
const maxStateLine = 16 << 20

// Run says whether two nodes hold the same state at a slot, and where they do not, the first account that differs.
func (c *diffCommand) Run(ctx context.Context, s *streams) error {
	asker, err := c.Client()
	switch {
	case err == nil && c.UnixSocket != nil:
		err = errors.New("--unix-socket names one node, and two are compared")
	case err == nil && c.Wait <= 0:
		err = errors.New("--wait must be above 0")
	}
	if err != nil {
		return &usageError{err}
	}
	waiting, stop := context.WithTimeout(ctx, c.Wait)
	defer stop()
	d := &nodesCompared{client: asker, urls: [2]string{c.A, c.B}, silence: c.silence}
	at, err := d.meet(waiting)
	if err != nil {
		return &usageError{fmt.Errorf("cannot compare: %w", err)}
	}
	if at[0] == at[1] {
		fmt.Fprintf(s.out, "equal at slot %d: state hash %s\n", at[0].Slot, at[0].StateHash)
		return nil
	}
	fmt.Fprintf(s.out, "at slot %d:\n", at[0].Slot)
	for i, url := range d.urls {
		fmt.Fprintf(s.out, "  %s: block %s, state hash %s\n", url, printable(at[i].Blockhash), printable(at[i].StateHash))
	}
	if at[0].Blockhash != at[1].Blockhash {
		return fmt.Errorf("%w: they have another block there", errDiffer)
	}
	if err := d.first(ctx, waiting, s.out); err != nil {
		return fmt.Errorf("%w; the first difference is not found: %w", errDiffer, err)
	}
	return errDiffer
}

// nodesCompared are two nodes that are asked for their states.
type nodesCompared struct {
	client  *http.Client
	urls    [2]string
	silence time.Duration
}

// meet returns what both nodes say of one slot: the first that both were seen at, wherever each is by then.
func (d *nodesCompared) meet(ctx context.Context) (at [2]stateAt, err error) {
	var seen [2]map[uint64]stateAt
	for seen[0], seen[1] = map[uint64]stateAt{}, map[uint64]stateAt{}; ; {
		for i := range d.urls {
			if at[i], err = d.at(ctx, i); err != nil {
				return at, err
			}
			seen[i][at[i].Slot] = at[i]
			if other, both := seen[1-i][at[i].Slot]; both {
				at[1-i] = other
				return at, nil
			}
		}
		if wait.Sleep(ctx, askAgain) != nil {
			return at, fmt.Errorf("they were not seen at one slot; %s is at %d, %s at %d", d.urls[0], at[0].Slot, d.urls[1], at[1].Slot)
		}
	}
}

// at returns where a node stands.
func (d *nodesCompared) at(ctx context.Context, i int) (at stateAt, err error) {
	w, err := d.open(ctx, ctx, i, "/state")
	if err != nil {
		return at, err
	}
	return w.at, w.body.Close()
}

// stateWalk is the state of a node, read line by line.
type stateWalk struct {
	at   stateAt
	body io.Closer
	*bufio.Scanner
}

// open asks a node for a path, and again while it cannot answer and the wait lasts.
func (d *nodesCompared) open(ctx, waiting context.Context, i int, path string) (*stateWalk, error) {
	response, err := askOperators(ctx, d.client, d.urls[i], path, d.urls[i], d.silence)
	for errors.Is(err, errUnavailable) && wait.Sleep(waiting, askAgain) == nil {
		response, err = askOperators(ctx, d.client, d.urls[i], path, d.urls[i], d.silence)
	}
	if err != nil {
		return nil, err
	}
	w := &stateWalk{body: response.Body, Scanner: bufio.NewScanner(response.Body)}
	w.Buffer(nil, maxStateLine)
	if !w.Scan() || json.Unmarshal(w.Bytes(), &w.at) != nil {
		_ = response.Body.Close()
		return nil, fmt.Errorf("%s does not say where it stands", d.urls[i])
	}
	return w, nil
}

// first prints the first account, or mint, that differs between the nodes at a slot. The node that is ahead holds its state while the other one
// comes to the same slot.
func (d *nodesCompared) first(ctx, waiting context.Context, out io.Writer) error {
	var walks [2]*stateWalk
	defer func() {
		for _, w := range walks {
			if w != nil {
				_ = w.body.Close()
			}
		}
	}()
	ahead := uint64(0)
	for i := 0; walks[0] == nil || walks[1] == nil || walks[0].at.Slot != walks[1].at.Slot; i = 1 - i {
		if w := walks[i]; w != nil && w.at.Slot == ahead {
			continue
		} else if w != nil {
			_ = w.body.Close()
		}
		w, err := d.openFrom(ctx, waiting, i, ahead)
		if err != nil {
			return err
		}
		walks[i], ahead = w, max(ahead, w.at.Slot)
	}
	return d.compare(walks, out)
}

// openFrom opens the state of a node once it has come to a slot.
func (d *nodesCompared) openFrom(ctx, waiting context.Context, i int, slot uint64) (*stateWalk, error) {
	waiting, stop := context.WithTimeout(waiting, heldFor)
	defer stop()
	for at := (stateAt{}); at.Slot < slot; {
		var err error
		if at, err = d.at(waiting, i); err != nil {
			return nil, err
		}
		if at.Slot < slot && wait.Sleep(waiting, askAgain) != nil {
			return nil, fmt.Errorf("%s does not come to slot %d", d.urls[i], slot)
		}
	}
	return d.open(ctx, waiting, i, "/state?accounts")
}

// compare reads two states of one slot up to the first lines that differ, and prints them. Of a node that lacks what the other one holds that is
// what it holds next.
func (d *nodesCompared) compare(walks [2]*stateWalk, out io.Writer) error {
	for {
		var lines [2][]byte
		for i, w := range walks {
			if w.Scan() {
				lines[i] = w.Bytes()
			}
			if err := w.Err(); err != nil {
				return err
			}
		}
		if lines[0] == nil && lines[1] == nil {
			return fmt.Errorf("at slot %d all accounts are equal", walks[0].at.Slot)
		}
		if !bytes.Equal(lines[0], lines[1]) {
			fmt.Fprintf(out, "the first difference, at slot %d:\n", walks[0].at.Slot)
			for i, url := range d.urls {
				fmt.Fprintf(out, "  %s: %s\n", url, printable(string(lines[i][:min(len(lines[i]), maxShownBytes)])))
			}
			return nil
		}
	}
}

// maxShownBytes is how much of an account is shown: data may be long.
const maxShownBytes = 2000
