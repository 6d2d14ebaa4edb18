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
	ingestData     = 304 // bytes of an account, where there are any
	ingestLeast    = 100 // blocks: fewer are read at once, and cannot be timed
	// ingestLook is how often a server is asked how far it is. The answer costs it a part of a millisecond.
	ingestLook = 20 * time.Millisecond
	// pipeLongest is for how long Redis takes updates, in durations of a measurement: with a sync for each it would take minutes.
	pipeLongest = 3
)

// ingest is one run of the scenario: a ledger in a file.
type ingest struct {
	*Run
	config feed.Config
	events string // the path
	newest ledger.Slot
}

// writeIngest writes the event file, of accounts with so many bytes of data.
func writeIngest(r *Run, accounts, blocks, data int) *ingest {
	s := &ingest{Run: r, events: filepath.Join(r.tempDir(), "ledger.events")}
	s.config = feed.Config{Accounts: max(r.Scaled(accounts), ingestUpdates), Updates: ingestUpdates, Tokens: ingestTokens, Data: data}
	s.newest = writeLedger(s.events, s.config, max(r.Scaled(blocks), ingestLeast))
	return s
}

func runIngest(ctx context.Context, r *Run) {
	s := writeIngest(r, ingestAccounts, ingestBlocks, 0)
	withData, without := writeIngest(r, ingestAccounts, ingestBlocks/4, ingestData), writeIngest(r, ingestAccounts, ingestBlocks/4, 0)
	r.Note("%d accounts, %d of 100 hold tokens; blocks of %d updates, each synced before it is seen, many with one sync (--wal-sync always)", s.config.Accounts, ingestTokens, ingestUpdates)
	r.Note("timed from the first block seen published to the last, by asking for the metrics")
	r.Note("with-data and without-data: a quarter of the blocks, so that nearly every update is the first of its account; with %d bytes of data an account, of which an update changes %d, and with none", ingestData, feed.ChangedBytes)
	subjects := []func(){
		func() { s.read(ctx, "ledgerd", "--data", "none") },
		func() { without.read(ctx, "without-data", "--data", "none") },
		func() { withData.read(ctx, "with-data", "--data", "all") },
	}
	if r.hasRedis() {
		r.Note("Redis takes pipelined SETs of the same bytes without a network, and has the indexes of base state, which these updates do not change")
		subjects = append(subjects, func() { s.pipe(ctx, "everysec") }, func() { s.pipe(ctx, "always") })
	}
	inTurns(r, subjects...)
}

// updates returns how many there are in the blocks after one up to another.
func (s *ingest) updates(from, to ledger.Slot) float64 {
	return float64(to-from) * float64(s.config.Updates)
}

// passage is what was seen from the first block that a server was seen to show to the last one of the ledger.
type passage struct {
	used
	first, last sighting
	updates     float64
}

// watch waits until a server shows all of the ledger, and returns what it was seen to do, and what groups of processes used.
func (s *ingest) watch(ctx context.Context, server *proc.Server, groups ...[]int) (p passage) {
	p.first = awaitSlot(ctx, server, time.Millisecond, feed.FirstSlot)
	p.used = metered(func() { p.last = awaitSlot(ctx, server, ingestLook, s.newest) }, groups...)
	p.updates = s.updates(ledger.Slot(p.first.metrics[processedSlot]), s.newest)
	if p.updates == 0 {
		check(errors.New("the ledger is too small to be timed: all of it was read at once"))
	}
	index := slices.Collect(s.config.Indexes(s.newest))[0]
	answers(ctx, server, s.config.Account(index, s.newest))
	return p
}

// seconds returns how long it took, with both looks.
func (p *passage) seconds() float64 { return p.last.told.Sub(p.first.asked).Seconds() }

// perSecond returns how much a metric grew in a second.
func (p *passage) perSecond(metric string) float64 {
	return (p.last.metrics[metric] - p.first.metrics[metric]) / p.seconds()
}

// read has a server read the file.
func (s *ingest) read(ctx context.Context, subject string, flags ...string) {
	server := s.start(ctx, "", append(flags, "--source", "file:"+s.events)...)
	p := s.watch(ctx, server, []int{server.Pid()})
	if counted, want := p.last.metrics["ledgerd_seq"], s.updates(feed.FirstSlot, s.newest); counted != want {
		check(fmt.Errorf("ledgerd counts %.0f updates, not %.0f", counted, want))
	}
	if durable := p.last.metrics["ledgerd_log_durable_slot"]; durable < float64(s.newest) {
		check(fmt.Errorf("ledgerd shows block %d when block %.0f is durable", s.newest, durable))
	}
	s.record(subject, p.updates, p.seconds(), p.cpu[0],
		report.Figure{Unit: "log-MB/s", Value: p.perSecond("ledgerd_log_written_bytes_total") / 1e6},
		report.Figure{Unit: "fsyncs/s", Value: p.perSecond("ledgerd_log_fsync_duration_seconds_count")})
}

func (s *ingest) record(subject string, updates, seconds float64, cpu time.Duration, more ...report.Figure) {
	s.Record(subject, int(updates), append([]report.Figure{
		{Unit: "updates/s", Value: updates / seconds},
		{Unit: "cpu-us/update", Value: cpu.Seconds() * 1e6 / updates},
	}, more...)...)
}

// pipe has Redis keep the same updates.
func (s *ingest) pipe(ctx context.Context, sync string) {
	store := startStore(ctx, s.Run, s.config, s.tempDir(), "--appendonly", "yes", "--appendfsync", sync, "--auto-aof-rewrite-percentage", "0")
	s.Note("%s", store.Version)
	store.fill()
	slot := feed.FirstSlot
	send := func(send send) error {
		for began := time.Now(); slot < s.newest && time.Since(began) < pipeLongest*s.Duration; {
			slot++
			for index := range s.config.Indexes(slot) {
				if err := store.set(send, index, slot); err != nil {
					return err
				}
			}
		}
		return nil
	}
	used := metered(func() { check(store.Pipe(send)) }, []int{store.Pid()})
	for index := range s.config.Indexes(slot) {
		store.holds(index, slot)
	}
	s.record("redis-"+sync, s.updates(feed.FirstSlot, slot), used.took.Seconds(), used.cpu[0])
}
