package engine

import (
	"slices"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/datadir"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/snapshot/vfs/vfstest"
	"ledgerd/snapshot/wal"
)

// encodedLog returns the records that lie in a node's log.
func encodedLog(t *testing.T, e *Engine) (all []string) {
	t.Helper()
	_, err := wal.ReplayBeside(t.Context(), e.config.Dir.FS(), datadir.LogDir("data"), 1, func(commit []wal.Entry) error {
		for i := range commit {
			all = append(all, string(codec.AppendRecord(nil, commit[i].Record)))
		}
		return nil
	})
	noErr(t, err)
	return all
}

// withoutWallets returns records as a program of format version 1 wrote them.
func withoutWallets(records []*ledger.Record) (old []*ledger.Record) {
	for _, r := range records {
		o := *r
		o.Updates = slices.Clone(r.Updates)
		for i := range o.Updates {
			o.Updates[i].WalletBefore = ledger.Opt[ledger.Pubkey]{}
		}
		old = append(old, &o)
	}
	return old
}

// TestLogOfVersionOneIsGoneOnWith replays and follows the log of a random stream as a program wrote it that knew no
// wallet before: the updates tell it all the same, and the old records keep their bytes. A log that tells the wallets is
// replayed to the same updates.
func TestLogOfVersionOneIsGoneOnWith(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		events, m := streams()[0].randomEvents(seeded(t, 1).Uint64(), streamEvents)
		n := startNode(t, live(), Config{Shards: 2})
		n.send(events...)
		records := n.records()
		next := child(m.tip().Block, m.tip().Slot+50, 9, lamports(key(1), 0))
		n.send(next)
		want := encodedRecords(n)
		n.mustStop()

		old := withoutWallets(records)
		for _, held := range [][]*ledger.Record{old, records} {
			c := onDisk(t, vfstest.NewMemory(), Config{Shards: 1})
			log, err := wal.Open(wal.Config{FS: c.Dir.FS(), Dir: datadir.LogDir("data")}, wal.End{})
			if err == nil {
				err = log.Commit(held)
			}
			if err == nil {
				err = log.Close()
			}
			noErr(t, err)
			own := startNode(t, live(), c)
			if got := encodedRecords(own); !slices.Equal(got, want[:len(records)]) {
				t.Error("the replay does not tell the wallets before")
			}
			own.send(next)
			if got := encodedLog(t, own.Engine); !slices.Equal(got, append(encoded(held), want[len(records):]...)) {
				t.Error("the log does not go on after the old records")
			}
		}
		newer := func(r string) bool { return r[0] == 2 } // the format version
		if slices.ContainsFunc(encoded(old), newer) || !slices.ContainsFunc(want, newer) {
			t.Error("the old records are not of format version 1, or no new one is of version 2")
		}

		l := newSharedLedger()
		l.mu.Lock()
		for _, r := range old {
			l.appendLocked([]*ledger.Record{r})
		}
		l.mu.Unlock()
		replica := startMember(t, l, nil, onDisk(t, vfstest.NewMemory(), Config{Shards: 2}))
		if got := encodedRecords(replica.subject); !slices.Equal(got, want[:len(records)]) || replica.Fenced() != "" {
			t.Errorf("the replica does not tell the wallets before: %s", replica.Status().Unhealthy)
		}
	})
}

func encoded(records []*ledger.Record) (all []string) {
	for _, r := range records {
		all = append(all, string(codec.AppendRecord(nil, r)))
	}
	return all
}
