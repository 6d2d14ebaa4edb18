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
	if b.state == nil {
		return nil
	}
	state := b.state
	b.state = nil
	return b.out.put(ctx, state)
}

// putBase emits base state of any size as events of bounded size.
func putBase(ctx context.Context, out *sink, state *ledger.BaseState) error {
	accounts, mints := state.Accounts, state.Mints
	for first := true; first || len(accounts)+len(mints) > 0; first = false {
		part := &ledger.BaseState{Slot: state.Slot}
		n := min(len(accounts), maxBaseAccounts)
		part.Accounts, accounts = accounts[:n:n], accounts[n:]
		m := min(len(mints), maxBaseAccounts-n)
		part.Mints, mints = mints[:m:m], mints[m:]
		if err := out.put(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
