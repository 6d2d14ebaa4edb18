package reader

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/published"
	"ledgerd/shard"
	"ledgerd/snapshot"
	"ledgerd/snapshot/vfs/vfstest"
)

// TestBlockBetweenTheArchiveAndNothingIsNotIndexed: the archive ends below the slot, and damage took all blocks that memory had.
func TestBlockBetweenTheArchiveAndNothingIsNotIndexed(t *testing.T) {
	a, err := snapshot.OpenArchive(vfstest.NewMemory(), "history", 1<<30, func() []string { return nil }, nil)
	ledgertest.Must(t, err)
	ledgertest.Must(t, a.Add(t.Context(), []snapshot.HeldBlock{{Block: &ledger.Block{Slot: 5}}}, 0, snapshot.Pace{}))
	r := New(Config{Board: published.NewBoard(nil), Deadline: time.Minute})
	r.ReadArchive(a)
	head := &ledger.Head{HasBlock: true, Floor: 100}
	head.Tips[ledger.Processed].Slot = 200
	_, _, err = r.Block(ledger.Query{Head: head}, 50)
	why, ok := errors.AsType[*ledger.NotFoundError](err)
	if !ok || why.Absence != ledger.SlotNotIndexed {
		t.Errorf("err = %v, want that the slot is not indexed", err)
	}
}

// TestABlockIsPrunedWhoseFileIsDroppedBeforeItsTurn: the question waits behind another one that reads the disk.
func TestABlockIsPrunedWhoseFileIsDroppedBeforeItsTurn(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		disk := vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{})
		a, err := snapshot.OpenArchive(disk, "history", 1<<30, func() []string { return nil }, slog.New(slog.DiscardHandler))
		ledgertest.Must(t, err)
		for _, slot := range []ledger.Slot{5, 50} {
			held := []snapshot.HeldBlock{{Block: &ledger.Block{Slot: slot, ParentSlot: slot - 1}}}
			ledgertest.Must(t, a.Add(t.Context(), held, 0, snapshot.Pace{}))
		}
		r := New(Config{Board: published.NewBoard(nil), Deadline: time.Minute})
		r.ReadArchive(a)
		head := &ledger.Head{HasBlock: true, Floor: 100}
		head.Tips[ledger.Processed].Slot = 200

		read := make(chan struct{})
		disk.Arm(vfstest.Plan{Before: func(vfstest.Call) { <-read }})
		var before, behind error
		var asked sync.WaitGroup
		asked.Go(func() { _, _, before = r.Block(ledger.Query{Head: head}, 50) })
		synctest.Wait()
		asked.Go(func() { _, _, behind = r.Block(ledger.Query{Head: head}, 5) })
		synctest.Wait()
		disk.Arm(vfstest.Plan{})
		if a.Shrink() == 0 {
			t.Fatal("nothing was dropped")
		}
		close(read)
		asked.Wait()
		ledgertest.Must(t, before)
		why, ok := errors.AsType[*ledger.NotFoundError](behind)
		if !ok || why.Absence != ledger.SlotPruned {
			t.Errorf("err = %v, want that the slot is pruned", behind)
		}
	})
}

// TestAQuestionHasOneDeadline asks where each version is folded away before it is answered from.
func TestAQuestionHasOneDeadline(t *testing.T) {
	bubbletest.Test(t, func(t *testing.T) {
		board := published.NewBoard(nil)
		publish := func() { board.Publish(&ledger.Publication{Head: &ledger.Head{HasBlock: true}}) }
		publish()
		const deadline = 2 * time.Second
		r := New(Config{Board: board, Deadline: deadline})
		began := time.Now()
		_, _, err := answer(r, ledger.Query{}, func(_ ledger.View, until time.Time) (int, error) {
			ledgertest.Equal(t, until.Sub(began), deadline, "the deadline after the question")
			time.Sleep(deadline/3 + time.Millisecond)
			publish()
			if time.Since(began) > time.Minute {
				return 0, errors.New("asked for ever")
			}
			return 0, shard.ErrFolded
		})
		if took := time.Since(began); !errors.Is(err, ledger.ErrUnavailable) || took > 2*deadline {
			t.Errorf("answered %v after %v", err, took)
		}
		until := began.Add(time.Hour) // of a question that this one goes on from
		at, v, err := answer(r, ledger.Query{Deadline: until}, func(_ ledger.View, until time.Time) (time.Time, error) { return until, nil })
		ledgertest.Must(t, err)
		ledgertest.Equal(t, []time.Time{at, v.Deadline}, []time.Time{until, until}, "the deadlines asked by and told")
	})
}

// TestKeysAreScattered asks for many keys, of which most are one shard's: no question is for too many, or for none of the shard, and each answer
// stands where its key does.
func TestKeysAreScattered(t *testing.T) {
	shards := []*shard.Shard{shard.New(0, 3), shard.New(1, 3), shard.New(2, 3)}
	keys := make([]ledger.Pubkey, 3000)
	for i := range keys {
		keys[i] = sha256.Sum256(binary.BigEndian.AppendUint16(nil, uint16(i)))
		if i%2 == 0 || i < scatterKeys {
			keys[i][0] = 0x80 // in the middle
		}
	}
	got, err := Scatter(shards, keys, 0, time.Time{}, func(s *shard.Shard, keys []ledger.Pubkey, _ ledger.Version, _ time.Time, out []ledger.Pubkey) error {
		owned := 0
		for i, k := range keys {
			if shards[shard.Of(k.Prefix(), len(shards))] == s {
				out[i] = k
				owned++
			}
		}
		if owned == 0 || len(keys) > scatterKeys {
			t.Errorf("a shard is asked for %d keys of %d", owned, len(keys))
		}
		return nil
	})
	ledgertest.Must(t, err)
	ledgertest.Equal(t, got, keys, "the answers")
}
