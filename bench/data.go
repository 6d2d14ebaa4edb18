package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

var dataScenarios = []Scenario{
	{"ingest", "How many account updates a second are durable and published, read from an event file.", runIngest},
	{"memory", "How much memory an account takes with all indexes, and how long a start takes until the first right answer.", runMemory},
}

var dataGoals = []report.Goal{
	{Scenario: "ingest", Subject: "ledgerd", Unit: "updates/s", Of: "redis-always", AtLeast: 3,
		Why: "both have an update on the disk before anybody sees it, and ledgerd shares a sync among blocks"},
	{Scenario: "ingest", Subject: "ledgerd", Unit: "updates/s", Of: "redis-everysec", AtLeast: 1.25,
		Why: "who keeps Redis as it comes may lose a second, and has neither versions nor a stream; an update takes ledgerd 2.95 us of processors and " +
			"Redis, which uses one, 2.35: of two processors that is 1.6 times as many, of which reading the file takes a fifth (three times take four)"},
	{Scenario: "ingest", Subject: "with-data", Unit: "updates/s", Of: "ledgerd", AtLeast: 0.6,
		Why:   "three hundred bytes are as much as all else that an update has in the log",
		Needs: "data of which a part changes: here each update changes all of it, and the log has it before and after"},
	{Scenario: "memory", Subject: "ledgerd-read", Unit: "B/account", Of: "redis-filled", AtMost: 0.6, Why: whyMemory},
	{Scenario: "memory", Subject: "ledgerd-restarted", Unit: "B/account", Of: "redis-restarted", AtMost: 0.6, Why: whyMemory},
	{Scenario: "memory", Subject: "ledgerd-restarted", Unit: "accounts/s", Of: "redis-restarted", AtLeast: 2,
		Why: "Redis loads with one thread; a snapshot is read by as many as there are processors"},
}

const whyMemory = "the pointers, lengths and hash tables of a store for anything are as much as an account is"

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
func writeLedger(path string, c feed.Config, blocks int) (newest ledger.Slot, err error) {
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	buffered := bufio.NewWriterSize(file, fileBuffer)
	f, err := feed.New(buffered, c)
	for i := 0; i < blocks && err == nil; i++ {
		_, err = f.Block()
	}
	if err = errors.Join(err, buffered.Flush()); err != nil {
		return 0, fmt.Errorf("cannot write a ledger to %s: %w", path, err)
	}
	return f.Newest(), file.Sync()
}

// answers waits until a server tells of an account. A wrong answer is an error.
func answers(ctx context.Context, s *proc.Server, want ledger.AccountWrite) error {
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
	return errors.Join(err, wrong)
}
