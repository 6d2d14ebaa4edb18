package engine

import (
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/shard"
)

// resumePoint returns where the source continues, nil if there is no finalized block yet.
func (e *Engine) resumePoint() *ledger.ResumePoint {
	c := e.seq.Chain()
	n := c.Finalized
	if n == nil {
		return nil
	}
	version := n.Version
	return &ledger.ResumePoint{
		Slot: n.Slot(), Newest: c.Tip.Slot(), Blockhash: n.Block.Blockhash, Height: n.Block.Height,
		Accounts: func(visit func(*ledger.Account) bool) error { return e.visitAccounts(version, visit) },
		Mints: func(visit func(ledger.Pubkey, ledger.Mint) bool) error {
			return e.visitMints(version, func(m *ledger.MintWrite) bool { return visit(m.Pubkey, m.Mint) })
		},
	}
}

// visitAccounts calls visit for every live account at a version, in pubkey order, until it
// returns false. The caller must keep the version from being folded.
func (e *Engine) visitAccounts(v ledger.Version, visit func(*ledger.Account) bool) error {
	for _, s := range e.shards {
		for page := (shard.Page{}); !page.Done; {
			var err error
			if page, err = s.Scan(page.Next, v, time.Now().Add(scanDeadline)); err != nil {
				return err
			}
			for i := range page.Accounts {
				if !visit(&page.Accounts[i]) {
					return nil
				}
			}
		}
	}
	return nil
}

// visitMints does the same for mint facts.
func (e *Engine) visitMints(v ledger.Version, visit func(*ledger.MintWrite) bool) error {
	for _, s := range e.shards {
		var after ledger.Opt[ledger.Pubkey]
		for page := (shard.MintPage{}); !page.Done; {
			var err error
			if page, err = s.ScanMints(after, v, time.Now().Add(scanDeadline)); err != nil {
				return err
			}
			for i := range page.Mints {
				after = ledger.Some(page.Mints[i].Pubkey)
				if !visit(&page.Mints[i]) {
					return nil
				}
			}
		}
	}
	return nil
}

// scanDeadline bounds one page of a walk over all accounts or mints. It is long, since no client waits for it.
const scanDeadline = time.Minute
