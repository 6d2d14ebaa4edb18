package engine

import (
	"context"

	"ledgerd/engine/ledger"
)

// flatOut is a source that shows blocks as fast as they are taken.
type flatOut struct {
	blocks int
}

func (s *flatOut) Info() ledger.SourceInfo { return ledger.SourceInfo{Name: "flat out"} }
func (s *flatOut) Peers() int              { return 1 }

func (s *flatOut) Run(ctx context.Context, _ *ledger.ResumePoint, emit ledger.Emit) error {
	b := rootBlock(100)
	for range s.blocks {
		if err := emit(ctx, b); err != nil {
			return err
		}
		b = child(b, b.Slot+1, 0, lamports(key(1), ledger.Lamports(b.Slot)))
		b.Status = ledger.Confirmed
	}
	return nil
}
