package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ledgerd/engine/ledger"
)

// Source is a simulated ledger. It holds its parameters only: every Run begins
// its own world.
type Source struct {
	name   string // as the operator wrote it
	params params
	layout layout
	held   *ledger.DataPrograms // whose accounts are told with their data
}

// Open returns the simulated ledger of the parameters after "sim:", such as
// "seed=7,accounts=1000000". The error is one line that says which parameter is wrong.
func Open(parameters string) (*Source, error) {
	p, err := parseParams(parameters)
	if err != nil {
		return nil, err
	}
	return &Source{name: "sim:" + parameters, params: p, layout: newLayout(&p)}, nil
}

// HoldData has the source tell the data of accounts that these programs own. It is called before Run.
func (s *Source) HoldData(of *ledger.DataPrograms) { s.held = of }

// Info says that the source shows a whole ledger.
func (s *Source) Info() ledger.SourceInfo {
	return ledger.SourceInfo{
		Name:     s.name,
		Identity: "sim:" + s.params.String(),
		Complete: true,
	}
}

// Samples returns keys worth asking for, which exist from genesis on and never close: a
// wallet that changes all the time, a wallet with tokens, a mint, and a pool if there is one.
func (s *Source) Samples() []ledger.Pubkey {
	mint := s.layout.mints.at(1)
	busy, holder := s.layout.identities.first, s.layout.issuerOf(mint)
	samples := []ledger.Pubkey{s.layout.key(busy), s.layout.key(holder), s.layout.key(mint)}
	if s.params.pools > 0 {
		samples = append(samples, s.layout.key(s.layout.pools.first))
	}
	return samples
}

// Run emits base state and then slot after slot; after a restart, the slots after the
// newest finalized block. It returns nil after the last slot asked for, ctx.Err() once ctx
// ends, the error of emit as it is, or why the ledger cannot go on from the state given.
// Runs share nothing and may overlap.
func (s *Source) Run(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) error {
	c, err := s.begin(ctx, from, emit)
	if err != nil {
		return err
	}
	// A slot that the receiver was too busy for is not made up: the ledger's clock goes on from there.
	var clock <-chan time.Time
	if s.params.slotTime != 0 {
		ticker := time.NewTicker(s.params.slotLength())
		defer ticker.Stop()
		clock = ticker.C
	}
	for slot := c.tip.slot + 1; s.params.slots == 0 || uint64(slot) <= s.params.slots; slot++ {
		// What was shown before a restart is shown again at once: its time has come.
		if clock != nil && (from == nil || slot > from.Newest) {
			select {
			case <-clock:
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.advance(ctx, slot, emit); err != nil {
			return err
		}
	}
	return nil
}

// begin returns the chain as it stands where Run has to go on. On a fresh start it
// emits base state.
func (s *Source) begin(ctx context.Context, from *ledger.ResumePoint, emit ledger.Emit) (*chain, error) {
	w := newWorld(s.layout)
	w.held = s.held
	p := newProducer(&s.params, w)
	if from == nil {
		w.fill()
		return &chain{producer: p, tip: tip{firstSlot - 1, genesisHash(&s.params), 0}}, w.baseState(ctx, emit)
	}
	var err error
	switch {
	case from.Slot < firstSlot || p.schedule.kind(from.Slot) != mainBlock:
		err = errors.New("this ledger has no block there that stays")
	case !from.Height.Known:
		err = errors.New("the block's height is not held")
	default:
		err = w.restore(from)
	}
	if err != nil {
		return nil, fmt.Errorf("sim: cannot go on from slot %d: %w", from.Slot, err)
	}
	return &chain{producer: p, tip: tip{from.Slot, from.Blockhash, from.Height.Value}}, nil
}
