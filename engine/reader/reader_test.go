package reader

import (
	"errors"
	"testing"
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
