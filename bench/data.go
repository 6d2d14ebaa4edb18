package bench

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
)

const (
	// dataFinality is how deep blocks are finalized where the ledger is only to be kept: a snapshot is of a finalized block.
	dataFinality = 1
	// dataBlocks are so many, without updates, that one of them is finalized.
	dataBlocks = 2
	// snapshotSoon has a server take a snapshot as soon as there is something to take one of.
	snapshotSoon = "1s"
	fileBuffer   = 1 << 20
)

// writeLedger writes a ledger of so many blocks behind the first as an event file, to the disk, so that nobody pays later for its
// being written. It returns the newest slot.
func writeLedger(path string, c feed.Config, blocks int) (newest ledger.Slot) {
	file := got(os.Create(path))
	defer file.Close() // what matters of it Sync says
	buffered := bufio.NewWriterSize(file, fileBuffer)
	f := got(feed.New(buffered, c))
	for range blocks {
		got(f.Block())
	}
	check(buffered.Flush())
	check(file.Sync())
	return f.Newest()
}

// answers waits until a server tells of an account. A wrong answer is an error.
func answers(ctx context.Context, s *proc.Server, want ledger.AccountWrite) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var wrong error
	err := s.Until(ctx, patience, time.Millisecond, func(ctx context.Context) error {
		status, body, err := proc.Get(ctx, client, s.URL()+"/account/"+want.Pubkey.String())
		if err == nil && status == http.StatusServiceUnavailable {
			return errors.New("ledgerd is not ready")
		}
		if err == nil {
			wrong = same(body, recordText(peer.RecordOf(want)))
		}
		return err
	})
	check(errors.Join(err, wrong))
}
