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
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

var dataScenarios = []Scenario{
	{"ingest", "How many account updates a second are durable and published, read from an event file and from NDJSON.", runIngest},
	{"recover", "How long a start takes, from the process to the first right answer.", runRecover},
	{"memory", "How much memory an account takes with all indexes: after it was read, and after a restart.", runMemory},
	{"transactions", "How much memory a transaction with 12 accounts takes: after it was read, and after a restart.", runTransactions},
}

var dataGoals = []report.Goal{
	{Scenario: "ingest", Subject: "ledgerd-event-file", Unit: "updates/s", AtLeast: 1e6},
	{Scenario: "ingest", Subject: "ledgerd-event-file", Unit: "updates/s", Of: "redis-everysec", AtLeast: 3,
		Why: "an update of ledgerd is versioned, indexed, told to subscribers and synced before it is seen; a SET of Redis is none of these"},
	{Scenario: "ingest", Subject: "ledgerd-event-file", Unit: "updates/s", Of: "redis-always", AtLeast: 3},
	{Scenario: "ingest", Subject: "ledgerd-ndjson", Unit: "updates/s", AtLeast: 4e5},
	{Scenario: "recover", Subject: "ledgerd-30%-tokens", Unit: "accounts/s", AtLeast: 2.5e6},
	{Scenario: "recover", Subject: "ledgerd-30%-tokens", Unit: "accounts/s", Of: "redis-30%-tokens", AtLeast: 2},
	{Scenario: "recover", Subject: "ledgerd-50%-tokens", Unit: "accounts/s", AtLeast: 2.5e6},
	{Scenario: "recover", Subject: "ledgerd-50%-tokens", Unit: "accounts/s", Of: "redis-50%-tokens", AtLeast: 2},
	{Scenario: "memory", Subject: "ledgerd-read", Unit: "B/account", AtMost: 160},
	{Scenario: "memory", Subject: "ledgerd-read", Unit: "B/account", Of: "redis-keys-filled", AtMost: 0.6},
	{Scenario: "memory", Subject: "ledgerd-restarted", Unit: "B/account", AtMost: 160},
	{Scenario: "memory", Subject: "ledgerd-restarted", Unit: "B/account", Of: "redis-keys-restarted", AtMost: 0.6},
	{Scenario: "transactions", Subject: "ledgerd-read", Unit: "B/transaction", AtMost: 350},
	{Scenario: "transactions", Subject: "ledgerd-restarted", Unit: "B/transaction", AtMost: 350},
}

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

// keep starts a server on a data directory and waits until it has read the ledger of a file, whose finality is dataFinality, and
// has a snapshot of it.
func keep(ctx context.Context, r *Run, dataDir, path string, newest ledger.Slot, flags ...string) (*proc.Server, error) {
	s, err := r.start(ctx, dataDir, append([]string{"--source", "file:" + path, "--snapshot-interval", snapshotSoon}, flags...)...)
	if err != nil {
		return nil, err
	}
	_, err = awaitMetrics(ctx, s, 20*time.Millisecond, func(m map[string]float64) bool {
		return m[processedSlot] == float64(newest) && m[finalizedSlot] >= float64(newest-dataFinality) && m["ledgerd_snapshot_slot"] == m[finalizedSlot]
	})
	return s, err
}

// restart starts a server on what a data directory holds, and returns when it gives the right answer about an account, and how long
// that took from the start of the process.
func restart(ctx context.Context, r *Run, dataDir string, want ledger.AccountWrite, flags ...string) (s *proc.Server, took time.Duration, err error) {
	began := time.Now()
	if s, err = r.start(ctx, dataDir, append([]string{"--source", "none"}, flags...)...); err == nil {
		err = answers(ctx, s, want)
	}
	return s, time.Since(began), err
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
			wrong = same(body, recordText(recordOf(want)))
		}
		return err
	})
	return errors.Join(err, wrong)
}
