package fill

import (
	"context"

	"ledgerd/engine/ledger"
)

// maxWanted bounds the keys that wait to be looked at: more than may be pending in part would be refused.
const maxWanted = MaxPending / 2

// Want completes held accounts that somebody is told about, without a query that waits. What is over the bound or cannot be fetched now is not: the
// caller names an account again when a block has changed it. An account that is not held is not fetched, as nobody asked for it.
func (f *Filler) Want(keys ...ledger.Pubkey) {
	f.update(func() {
		for _, k := range keys {
			f.wantLocked(k)
		}
	})
}

func (f *Filler) wantLocked(key ledger.Pubkey) {
	if len(f.wanted) < maxWanted {
		f.wanted[key] = struct{}{}
	}
	f.wakeUp()
}

// lookAtWanted makes wanted accounts pending of which something is unknown, or too old. It looks at so many as one fetch takes, since queries wait
// for it meanwhile; the others are looked at after that.
func (f *Filler) lookAtWanted(ctx context.Context) {
	var keys []ledger.Pubkey
	f.update(func() {
		for k := range f.wanted {
			if len(keys) == ledger.MaxFetchKeys {
				f.wakeUp()
				break
			}
			keys = append(keys, k)
			delete(f.wanted, k)
		}
	})
	for _, k := range keys {
		if ctx.Err() != nil {
			return
		}
		p, since := f.incomplete(k)
		f.update(func() {
			switch { // where a newer block has changed the account, it is looked at once more after this answer
			case p == nil || p.atLeast >= since:
			case f.pending[k] == p:
				p.again = true
			default: // the answer has come meanwhile
				f.wantLocked(k)
			}
		})
	}
}
