package fill

import (
	"time"

	"ledgerd/engine/ledger"
)

// keptMints bounds the mints that are remembered as known. Those that are forgotten are fetched again when they are written.
const keptMints = 1 << 17

// wantMintsLocked makes the mints pending of which a block shows the header alone: whether their amounts are scaled comes after the
// header, and does not change while the account lives. No query waits for them. An answer must be newer than the block, which may
// have opened the account. Those for which there is no room are fetched when they are written again.
func (f *Filler) wantMintsLocked(b *ledger.Block) {
	for i := range b.Accounts {
		switch w := &b.Accounts[i]; {
		case w.Lamports == 0:
			delete(f.mints, w.Pubkey) // what is opened there later may be another mint
		case w.Mint != nil && !w.Mint.Scaled.Known && !f.mints[w.Pubkey] && f.pending[w.Pubkey] == nil && len(f.pending) < MaxPending/2:
			f.addLocked(w.Pubkey, &pending{isMint: true, partial: true, atLeast: b.Slot + 1})
		}
	}
}

// knownLocked remembers a mint that was answered.
func (f *Filler) knownLocked(key ledger.Pubkey) {
	if len(f.mints) == keptMints {
		clear(f.mints)
	}
	f.mints[key] = true
}

// retryLocked has a mint that could not be fetched wait for a while.
func (f *Filler) retryLocked(key ledger.Pubkey, wait time.Duration) {
	p := f.pending[key]
	p.notBefore = time.Now().Add(max(wait, PauseAfter))
	f.queue = append(f.queue, key)
	time.AfterFunc(max(wait, PauseAfter), f.wakeUp)
}
