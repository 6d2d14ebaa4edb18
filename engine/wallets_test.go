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

// walletCase is an account with what two blocks after each other write of it, and the wallet before that the
// second block and its undoing have to tell.
type walletCase struct {
	name         string
	first, then  []ledger.AccountWrite
	told, undone ledger.Opt[ledger.Pubkey]
}

// walletCases returns one case for each way in which an account comes to a wallet and leaves it, the n-th of key(n).
func walletCases() []walletCase {
	none, alice, bob, mint := ledger.Opt[ledger.Pubkey]{}, key(101), key(102), key(103)
	list := func(w ...ledger.AccountWrite) []ledger.AccountWrite { return w }
	return []walletCase{
		{"closed", list(holding(key(0), mint, alice, 1)), list(lamports(key(0), 0)), ledger.Some(alice), none},
		{"given to another wallet", list(holding(key(1), mint, alice, 1)), list(holding(key(1), mint, bob, 1)), ledger.Some(alice), ledger.Some(bob)},
		{"a plain account now", list(holding(key(2), mint, alice, 1)), list(lamports(key(2), 5)), ledger.Some(alice), none},
		{"closed and opened for another wallet", list(holding(key(3), mint, alice, 1)),
			list(lamports(key(3), 0), holding(key(3), mint, bob, 1)), ledger.Some(alice), ledger.Some(bob)},
		{"closed and opened for the same wallet", list(holding(key(4), mint, alice, 1)),
			list(lamports(key(4), 0), holding(key(4), mint, alice, 2)), none, none},
		{"another amount", list(holding(key(5), mint, alice, 1)), list(holding(key(5), mint, alice, 2)), none, none},
		{"another mint", list(holding(key(6), mint, alice, 1)), list(holding(key(6), key(104), alice, 1)), none, none},
		{"a token account now", list(lamports(key(7), 5)), list(holding(key(7), mint, alice, 1)), none, ledger.Some(alice)},
		{"opened after it was closed", list(holding(key(8), mint, alice, 1), lamports(key(8), 0)), list(holding(key(8), mint, bob, 1)), none, ledger.Some(bob)},
		{"opened", nil, list(holding(key(9), mint, alice, 1)), none, ledger.Some(alice)},
		{"plain all along", list(lamports(key(10), 5)), list(lamports(key(10), 6)), none, none},
	}
}

// walletEvents returns a root, the blocks of the cases, one that undoes the second of them, and one behind it.
func walletEvents() []ledger.Event {
	root := rootBlock(100)
	first := child(root, 101, 0)
	then, instead := child(first, 102, 0), child(first, 103, 1)
	for _, c := range walletCases() {
		first.Accounts = append(first.Accounts, c.first...)
		then.Accounts = append(then.Accounts, c.then...)
	}
	return []ledger.Event{root, first, then, instead, child(instead, 104, 0, lamports(key(1), 0))}
}

// checkWallets holds the updates of a block and of the rollback that undoes it against the cases.
func checkWallets(t *testing.T, what string, records []*ledger.Record) {
	t.Helper()
	looked := 0
	for _, r := range records {
		undone := r.Kind == ledger.RollbackRecord
		if r.Slot != 102 && !undone {
			continue
		}
		looked++
		cases := walletCases()
		if len(r.Updates) != len(cases) {
			t.Errorf("%s: %d updates at slot %d, want %d", what, len(r.Updates), r.Slot, len(cases))
		}
		for _, u := range r.Updates {
			i := slices.IndexFunc(cases, func(c walletCase) bool { return c.then[0].Pubkey == u.Account.Pubkey })
			want := cases[i].told
			if undone {
				want = cases[i].undone
			}
			if u.WalletBefore != want {
				t.Errorf("%s: %s, undone %v: got %v, want %v", what, cases[i].name, undone, u.WalletBefore, want)
			}
		}
	}
	if looked != 2 {
		t.Errorf("%s: %d records of the block and its undoing, want 2", what, looked)
	}
}

// TestUpdatesTellTheWalletBefore looks at what is published, published again by the replay after a power cut, and
// read back from the log.
func TestUpdatesTellTheWalletBefore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		disk := vfstest.NewMemory()
		n := startNode(t, live(), onDisk(t, disk, Config{Shards: 2}))
		n.send(walletEvents()...)
		checkWallets(t, "published", n.records())
		want := encodedRecords(n)
		disk = disk.Crash(0, 1)
		n.mustStop()

		again := startNode(t, live(), onDisk(t, disk, Config{Shards: 3}))
		if got := encodedRecords(again); !slices.Equal(got, want) {
			t.Errorf("the replay published %d records, the node before %d, or others", len(got), len(want))
		}
		if got := encodedLog(t, again.Engine); !slices.Equal(got, want) {
			t.Errorf("the log holds %d records, published were %d, or others", len(got), len(want))
		}
		again.mustStop()
	})
}

// encodedLog returns the records that lie in a node's log.
func encodedLog(t *testing.T, e *Engine) (all []string) {
	t.Helper()
	_, err := wal.ReplayBeside(t.Context(), e.config.Dir.FS(), datadir.LogDir("data"), 1, func(commit []wal.Entry) error {
		for i := range commit {
			all = append(all, string(codec.AppendRecord(nil, commit[i].Record)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
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

// TestLogOfVersionOneIsGoneOnWith replays and follows logs that a program wrote which knew no wallet before: the
// updates tell it all the same, and the old records keep their bytes.
func TestLogOfVersionOneIsGoneOnWith(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := startNode(t, live(), Config{Shards: 2})
		events := walletEvents()
		n.send(events[:4]...)
		want := encodedRecords(n)
		old := withoutWallets(n.records())
		n.send(events[4])
		after := encodedRecords(n)
		n.mustStop()

		disk := vfstest.NewMemory()
		c := onDisk(t, disk, Config{Shards: 1})
		log, err := wal.Open(wal.Config{FS: disk, Dir: datadir.LogDir("data")}, wal.End{})
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Commit(old); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		own := startNode(t, live(), c)
		if got := encodedRecords(own); !slices.Equal(got, want) {
			t.Error("the replay does not tell the wallets before")
		}
		own.send(events[4])
		var kept []string
		for _, r := range old {
			b := codec.AppendRecord(nil, r)
			if b[0] != 1 {
				t.Fatalf("record %d is of format version %d", r.Version, b[0])
			}
			kept = append(kept, string(b))
		}
		if got := encodedLog(t, own.Engine); !slices.Equal(got, append(kept, after[len(want):]...)) {
			t.Error("the log does not go on behind the old records")
		}
		own.mustStop()

		l := newSharedLedger()
		l.mu.Lock()
		for _, r := range old {
			l.appendLocked([]*ledger.Record{r})
		}
		l.mu.Unlock()
		replica := startMember(t, l, nil, onDisk(t, vfstest.NewMemory(), Config{Shards: 2}))
		if got := encodedRecords(replica.subject); !slices.Equal(got, want) || replica.Fenced() != "" {
			t.Errorf("the replica does not tell the wallets before: %s", replica.Status().Unhealthy)
		}
		replica.mustStop()
	})
}
