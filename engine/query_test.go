package engine

import (
	"errors"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/bubble"
	"ledgerd/shard"
)

// TestAQuestionHasOneDeadline asks where each version is folded away before it is answered from.
func TestAQuestionHasOneDeadline(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		e := New(Config{Shards: 1})
		e.head.Store(&ledger.Head{HasBlock: true})
		began := time.Now()
		_, _, err := answer(e, ledger.Query{}, func(_ ledger.View, deadline time.Time) (int, error) {
			if got := deadline.Sub(began); got != queryDeadline {
				t.Errorf("asked with a deadline %v after the question, want %v", got, queryDeadline)
			}
			time.Sleep(queryDeadline/3 + time.Millisecond)
			e.head.Store(&ledger.Head{HasBlock: true})
			if time.Since(began) > time.Minute {
				return 0, errors.New("asked for ever")
			}
			return 0, shard.ErrFolded
		})
		if took := time.Since(began); !errors.Is(err, ledger.ErrUnavailable) || took > 2*queryDeadline {
			t.Errorf("answered %v after %v", err, took)
		}
	})
}
