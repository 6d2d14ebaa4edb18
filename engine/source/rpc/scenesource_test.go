package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// run has the source follow or fill, until the scene ends.
func (s *scene) run(words []string) {
	var from *ledger.ResumePoint
	if words[1] != "" {
		from = resumePoint(words[1])
		s.chain = map[ledger.Hash]bool{from.Blockhash: true}
	}
	s.start(func(ctx context.Context) {
		if words[0] == "follow" {
			ledgertest.ErrorIs(s, s.source.Run(ctx, from, s.emit), context.Canceled, "the end")
			return
		}
		err := s.source.Fill(ctx, from.Slot, from.Blockhash, number(words[2]), s.emit)
		kind := "by itself"
		if failure, ok := errors.AsType[upstream.Failure](err); ok {
			kind = failure.Kind().String()
		}
		s.report("ends: %s: %v", kind, err)
	})
}

// start has something go on, at most until the scene ends.
func (s *scene) start(what func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(s.Context())
	var going sync.WaitGroup
	s.Cleanup(func() {
		cancel()
		going.Wait()
	})
	going.Go(func() { what(ctx) })
}

// report tells what came of something, and when.
func (s *scene) report(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell("%v: %s", time.Since(s.begun), fmt.Sprintf(format, args...))
}

// fetch has the source fetch accounts.
func (s *scene) fetch(level string, keys []ledger.Pubkey) {
	s.start(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		commitment, _ := ledger.ParseCommitment(level)
		state, err := s.source.Fetch(ctx, keys, commitment)
		if up, ok := errors.AsType[*ledger.UpstreamError](err); ok {
			s.report("busy %t, again after %v: %v", up.Busy, up.RetryAfter, errors.Is(err, ledger.ErrUnavailable))
			return
		}
		if err != nil {
			s.report("%v", err)
			return
		}
		s.report("as of %d", state.Slot)
		for _, w := range state.Accounts {
			text := fmt.Sprintf("account %d: %d lamports", w.Pubkey[0], w.Lamports)
			if w.Known&ledger.FieldOwner != 0 {
				text += fmt.Sprintf(", owner %s", w.Owner)
			}
			s.report("%s", text)
		}
	})
}

// askSlot has the client ask for the newest slot.
func (s *scene) askSlot(words []string) {
	for range number(words[1]) {
		s.start(func(ctx context.Context) {
			if limit, err := time.ParseDuration(words[3]); err == nil {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
			}
			for range number(words[2]) {
				slot, err := s.source.client.slot(ctx, ledger.Confirmed)
				s.report("slot %d, %v", slot, err)
			}
		})
	}
}

// Write notes what is logged.
func (s *scene) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(text)
}

// emit notes an event. Neighbours that come at the same time share a line.
func (s *scene) emit(ctx context.Context, e ledger.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	text := ""
	switch e := e.(type) {
	case *ledger.Block:
		text = fmt.Sprintf("block %d", e.Slot)
		ledgertest.Equal(s, e.Status, ledger.Confirmed, "the commitment of block %d", e.Slot)
		if s.chain == nil {
			s.chain = map[ledger.Hash]bool{e.PreviousBlockhash.Value: true}
		}
		if !s.chain[e.PreviousBlockhash.Value] {
			s.Errorf("block %d does not build on what came before", e.Slot)
		}
		s.chain[e.Blockhash] = true
		if e.TransactionCount > 0 {
			text += fmt.Sprintf(" with %d transactions and %d writes", e.TransactionCount, len(e.Accounts))
		}
	case *ledger.SlotStatus:
		text = fmt.Sprintf("final %d", e.Slot)
		s.node.locked(func() {
			ledgertest.Equal(s, e.Blockhash, ledger.Some(s.node.blocks[e.Slot].hash), "the hash of final block %d", e.Slot)
		})
	case *ledger.BaseState:
		var known []int
		for _, a := range e.Accounts {
			known = append(known, int(a.Pubkey[0]))
		}
		slices.Sort(known)
		text = fmt.Sprintf("accounts %v as of %d", known, e.Slot)
	}
	if s.quiet {
		return ctx.Err()
	}
	at := fmt.Sprintf("%v: ", time.Since(s.begun))
	if i := len(s.told) - 1; i >= 0 && strings.HasPrefix(s.told[i], at) {
		s.told[i] += ", " + text
	} else {
		s.tell("%s%s", at, text)
	}
	return ctx.Err()
}

// number reads a slot or a count, which may be followed by a colon.
func number(word string) ledger.Slot {
	n, err := strconv.ParseUint(strings.TrimSuffix(word, ":"), 10, 64)
	if err != nil {
		panic(err)
	}
	return ledger.Slot(n)
}

// ranges reads slots, as in 11 13-15.
func ranges(words []string) (list []ledger.Slot) {
	for _, word := range words {
		if first, last, ok := strings.Cut(word, "-"); ok {
			list = append(list, slots(number(first), number(last))...)
		} else if word != "" {
			list = append(list, number(word))
		}
	}
	return list
}

// keys returns the accounts of some numbers.
func keys(words []string) (list []ledger.Pubkey) {
	for _, i := range ranges(words) {
		list = append(list, keyOf(int(i)))
	}
	return list
}

// resumePoint reads a block: its slot, and its hash where that is not made of the slot.
func resumePoint(word string) *ledger.ResumePoint {
	slot, hash, _ := strings.Cut(word, "/")
	return &ledger.ResumePoint{Slot: number(slot), Blockhash: hashOf(cmp.Or(hash, slot))}
}
