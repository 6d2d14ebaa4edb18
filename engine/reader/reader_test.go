package reader

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"ledgerd/engine/ledger"
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

// TestAQuestionHasOneDeadline: its own, or that of the question that it goes on from, and whoever answers it is told.
func TestAQuestionHasOneDeadline(t *testing.T) {
	board := published.NewBoard(nil)
	board.Publish(&ledger.Publication{Head: &ledger.Head{HasBlock: true}})
	r := New(Config{Board: board, Deadline: time.Minute})
	asked := func(q ledger.Query) time.Time {
		at, v, err := answer(r, q, func(v ledger.View) (time.Time, error) { return v.Deadline, nil })
		ledgertest.Must(t, err)
		ledgertest.Equal(t, v.Deadline, at, "the deadline that is told")
		return at
	}
	if left := time.Until(asked(ledger.Query{})); left > time.Minute || left < time.Minute/2 {
		t.Errorf("a question has %v", left)
	}
	until := time.Now().Add(time.Hour)
	ledgertest.Equal(t, asked(ledger.Query{Deadline: until}), until, "the deadline of a question that goes on from another")
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
