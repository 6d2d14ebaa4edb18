package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

const (
	ingestAccounts = 1_000_000
	ingestTokens   = 30   // of a hundred accounts
	ingestUpdates  = 4000 // of a block
	ingestBlocks   = 1000
	ingestLeast    = 100 // blocks: fewer are read at once, and cannot be timed
	// ingestLook is how often a server is asked how far it is. The answer costs it a part of a millisecond.
	ingestLook = 20 * time.Millisecond
	// pipeLongest is for how long Redis takes updates, in durations of a measurement: with a sync for each it would take minutes.
	pipeLongest = 3
)

// ingest is one run of the scenario: a ledger in two files.
type ingest struct {
	*Run
	config        feed.Config
	events, lines string // paths
	newest        ledger.Slot
}

func runIngest(ctx context.Context, r *Run) error {
	dir, remove, err := r.TempDir()
	if err != nil {
		return err
	}
	defer remove()
	s := &ingest{Run: r, events: filepath.Join(dir, "ledger.events"), lines: filepath.Join(dir, "ledger.ndjson")}
	s.config = feed.Config{Accounts: max(r.Scaled(ingestAccounts), ingestUpdates), Updates: ingestUpdates, Tokens: ingestTokens}
	if s.newest, err = writeLedger(s.events, s.config, max(r.Scaled(ingestBlocks), ingestLeast)); err != nil {
		return err
	}
	if err := writeLines(s.lines, s.events); err != nil {
		return err
	}
	subjects := []func() error{
		func() error { return s.read(ctx, "ledgerd-event-file", s.events) },
		func() error { return s.read(ctx, "ledgerd-ndjson", s.lines) },
	}
	if r.Peers {
		subjects = append(subjects,
			func() error { return s.pipe(ctx, "everysec") },
			func() error { return s.pipe(ctx, "always") })
	}
	err = turns(r, subjects, func(measure func() error) error { return measure() })
	return errors.Join(err,
		r.Note("%d accounts, %d of 100 hold tokens; blocks of %d updates, each synced before it is seen, many with one sync (--wal-sync always)", s.config.Accounts, ingestTokens, ingestUpdates),
		r.Note("timed from the first block seen published to the last, by asking for the metrics"),
		r.Note("Redis takes pipelined SETs of the same bytes without a network, and has the indexes of base state, which these updates do not change"))
}

// updates returns how many there are in the blocks behind one up to another.
func (s *ingest) updates(from, to ledger.Slot) float64 {
	return float64(to-from) * float64(s.config.Updates)
}

// read has a server read a file. What is timed begins when the server is first seen to have published a block.
func (s *ingest) read(ctx context.Context, subject, path string) error {
	server, err := startReading(ctx, s.Run, "", path, "--snapshot-interval", "0")
	if err != nil {
		return err
	}
	defer server.Kill()
	first, err := awaitMetrics(ctx, server, time.Millisecond, func(m map[string]float64) bool { return m[processedSlot] >= float64(feed.FirstSlot) })
	if err != nil {
		return err
	}
	before, err := usageOf(server.Pid())
	if err != nil {
		return err
	}
	last, err := awaitMetrics(ctx, server, ingestLook, func(m map[string]float64) bool { return m[processedSlot] >= float64(s.newest) })
	if err != nil {
		return err
	}
	after, err := usageOf(server.Pid())
	if err != nil {
		return err
	}
	if err := s.check(ctx, server, last.metrics); err != nil {
		return err
	}
	from := ledger.Slot(first.metrics[processedSlot])
	if from == s.newest {
		return errors.New("the ledger is too small to be timed: all of it was read at once")
	}
	since := func(metric string) float64 { return last.metrics[metric] - first.metrics[metric] }
	took := last.told.Sub(first.asked)
	return errors.Join(s.record(subject, s.updates(from, s.newest), took, before, after,
		report.Figure{Unit: "log-MB/s", Value: since("ledgerd_log_written_bytes_total") / took.Seconds() / 1e6},
		report.Figure{Unit: "fsyncs/s", Value: since("ledgerd_log_fsync_duration_seconds_count") / took.Seconds()}), server.Stop())
}

func (s *ingest) record(subject string, updates float64, took time.Duration, before, after usage, more ...report.Figure) error {
	return s.Record(subject, int(updates), append([]report.Figure{
		{Unit: "updates/s", Value: updates / took.Seconds()},
		{Unit: "cpu-us/update", Value: (after.cpu - before.cpu).Seconds() * 1e6 / updates},
	}, more...)...)
}

// check checks that a server has all of the ledger, on the disk too.
func (s *ingest) check(ctx context.Context, server *proc.Server, m map[string]float64) error {
	if got, want := m["ledgerd_seq"], s.updates(feed.FirstSlot, s.newest); got != want {
		return fmt.Errorf("ledgerd counts %.0f updates, not %.0f", got, want)
	}
	if got := m["ledgerd_log_durable_slot"]; got < float64(s.newest) {
		return fmt.Errorf("ledgerd shows block %d when block %.0f is durable", s.newest, got)
	}
	index := slices.Collect(s.config.Indexes(s.newest))[0]
	return answers(ctx, server, s.config.Account(index, s.newest))
}

// pipe has Redis keep the same updates.
func (s *ingest) pipe(ctx context.Context, sync string) error {
	store, stop, err := startStore(ctx, s.Run, s.config, "--appendonly", "yes", "--appendfsync", sync, "--auto-aof-rewrite-percentage", "0")
	if err != nil {
		return err
	}
	defer stop()
	if err := store.fill(); err != nil {
		return err
	}
	before, err := usageOf(store.Pid())
	if err != nil {
		return err
	}
	slot := feed.FirstSlot
	err = store.Pipe(func(send send) error {
		for slot < s.newest && time.Since(before.at) < pipeLongest*s.Duration {
			slot++
			for index := range s.config.Indexes(slot) {
				if err := store.set(send, index, slot); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	after, err := usageOf(store.Pid())
	if err != nil {
		return err
	}
	for index := range s.config.Indexes(slot) {
		if err := store.holds(index, slot); err != nil {
			return err
		}
	}
	return s.record("redis-"+sync, s.updates(feed.FirstSlot, slot), after.at.Sub(before.at), before, after)
}
