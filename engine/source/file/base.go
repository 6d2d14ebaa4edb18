package file

import (
	"context"

	"ledgerd/engine/ledger"
)

// maxBaseAccounts bounds one base-state event. It becomes one record, and a record is
// applied and made durable as one: a few MiB keep both short.
const maxBaseAccounts = 4096

// baseBatch gathers accounts into base-state events of one slot and bounded size.
type baseBatch struct {
	out   *sink
	state *ledger.BaseState // nil while empty
}

// add puts one account at a slot into the batch, and emits what was gathered at another
// slot or is full.
func (b *baseBatch) add(ctx context.Context, slot ledger.Slot, w ledger.AccountWrite) error {
	if b.state != nil && (b.state.Slot != slot || len(b.state.Accounts) >= maxBaseAccounts) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	if b.state == nil {
		b.state = &ledger.BaseState{Slot: slot}
	}
	b.state.Accounts = append(b.state.Accounts, w)
	return nil
}

// flush emits what was gathered.
func (b *baseBatch) flush(ctx context.Context) error {
	state := b.state
	b.state = nil
	if state == nil {
		return nil
	}
	return b.out.put(ctx, state)
}
