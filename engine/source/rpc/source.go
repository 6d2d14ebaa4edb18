package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/wait"
	"ledgerd/engine/source/upstream"
)

// Source follows one node over JSON-RPC.
type Source struct {
	config Config
	client *client
	stats  upstream.Stats
	final  atomic.Uint64 // the newest slot that is known final
}

// New returns the source of a configuration. It does nothing yet.
func New(c Config) *Source {
	s := &Source{config: c.withDefaults()}
	s.client = newClient(&s.config, &s.stats)
	return s
}

// Info says what the sequencer has to know of the source. Its name holds no secrets.
func (s *Source) Info() ledger.SourceInfo {
	return ledger.SourceInfo{Name: "rpc:" + publicName(s.config.URL), Live: true}
}

// Peers returns 1 while the node answers, else 0.
func (s *Source) Peers() int { return s.stats.Peers() }

// Trouble returns what keeps the source from going on, "" if nothing does.
func (s *Source) Trouble() string { return s.stats.Trouble() }

// Upstream returns the figures of the way to the node.
func (s *Source) Upstream() upstream.Snapshot { return s.stats.Snapshot() }

// CloseIdle gives back the connections that nobody uses. Run does so at its end; who only fills and
// fetches calls it.
func (s *Source) CloseIdle() { s.client.http.CloseIdleConnections() }

// Run emits the node's confirmed blocks, in the order of the chain and without a gap, and what becomes
// final, until ctx ends (it returns ctx.Err()) or emit fails (its error). It tries for ever whatever else goes wrong.
func (s *Source) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	defer s.CloseIdle()
	f := s.newFollower(from, emit, s.config.Accounts)
	if from != nil {
		s.final.Store(uint64(from.Slot))
	}
	for {
		begun := time.Now()
		more, err := f.step(ctx)
		if err != nil {
			return err
		}
		if _, err := f.finality(ctx); err != nil {
			return err
		}
		pause := max(poll-time.Since(begun), poll/4)
		if more {
			pause = 0
		}
		if err := wait.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// fillTries is how often in a row the next block of a gap may not be had before the filling is
// given up. The last tries are 10 seconds apart.
const fillTries = 10

// Fill emits the confirmed blocks after the block with slot after and hash afterHash, up to and including
// the block of slot upTo, in the order of the chain, and base state of all accounts that they
// touch, as it stands at that block, or at a later one that the chain has to reach before. It returns nil once upTo is emitted, ctx.Err(), the error
// of emit, or why the node cannot give the next block; what was emitted before stands then.
func (s *Source) Fill(ctx context.Context, after ledger.Slot, afterHash ledger.Hash, upTo ledger.Slot, emit ledger.Emit) error {
	if upTo <= after {
		return errors.New("there is nothing to fill: the slots are not in order")
	}
	mode := AccountsTouched
	if s.config.Accounts == AccountsNone {
		mode = AccountsNone
	}
	f := s.newFollower(&ledger.ResumePoint{Slot: after, Blockhash: afterHash}, emit, mode)
	f.upTo = upTo
	highest := after
	for tries := 0; f.last().Slot < upTo; {
		_, err := f.step(ctx)
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case f.last().Slot > highest: // blocks that are taken back and come otherwise are no progress
			tries, highest = 0, f.last().Slot
			continue
		}
		lasts := causeOf(f.why) == pruned || causeOf(f.why) == wrongParent
		if tries++; tries > fillTries || lasts && tries >= patience {
			return fmt.Errorf("cannot fill slots %d to %d: %w", f.last().Slot+1, upTo, f.why)
		}
	}
	return nil
}

// Fetch returns accounts as they stand at the node at a level, all at one slot, not below the newest
// block emitted as final. Errors are of type *ledger.UpstreamError, or ctx's.
func (s *Source) Fetch(ctx context.Context, keys []ledger.Pubkey, level ledger.Commitment) (*ledger.BaseState, error) {
	if len(keys) > ledger.MaxFetchKeys {
		return nil, fmt.Errorf("cannot fetch %d accounts at once", len(keys))
	}
	if wait := s.client.limited(); wait > 0 {
		return nil, &ledger.UpstreamError{Busy: true, RetryAfter: wait, Err: &callError{method: "getMultipleAccounts", cause: rateLimited}}
	}
	state, err := s.client.accountsAt(ctx, keys, level, ledger.Slot(s.final.Load()))
	failed, ok := errors.AsType[*callError](err)
	switch {
	case ok:
		busy := failed.cause == rateLimited || failed.cause == notYet || failed.cause == behind
		return nil, &ledger.UpstreamError{Busy: busy, RetryAfter: failed.after, Err: failed}
	case err != nil:
		return nil, err
	}
	return &state, nil
}
