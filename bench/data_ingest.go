package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
)

// Ingest returns the scenario of a ledger that is read from a file.
func Ingest() []Scenario { return []Scenario{ingest} }

var ingest = Scenario{
	Name: "ingest",
	Help: "How many account updates a second are durable and published, read from an event file and from NDJSON.",
	Own:  "it has a server read a file of its own",
	Run:  func(ctx context.Context, env *Env) (*Result, error) { return runIngest(ctx, env, ingestUpdates) },
}

const (
	ingestAccounts = 1_000_000
	ingestTokens   = 30
	ingestUpdates  = 4000 // of a block
	ingestBlocks   = 1000
	ingestLeast    = 100 // blocks: fewer are read at once, and cannot be timed
	// ingestLook is how often the server is asked how far it is. The answer costs it a part of
	// a millisecond.
	ingestLook = 20 * time.Millisecond
)

const (
	fromEvents = "ledgerd, event file"
	fromLines  = "ledgerd, NDJSON"
	fromRedis  = "redis, pipelined SET"
)

// ingestRun is one run of the scenario: a ledger in two files.
type ingestRun struct {
	env           *Env
	result        *Result
	config        feed.Config
	dir           string
	blocks        int
	events, lines string // paths
	newest        ledger.Slot
}

func runIngest(ctx context.Context, env *Env, updates int) (*Result, error) {
	dir, remove, err := dataDir(env, "ingest")
	if err != nil {
		return nil, err
	}
	defer remove()
	s := &ingestRun{
		env: env, result: &Result{Scenario: "ingest"}, dir: dir,
		events: filepath.Join(dir, "ledger.events"), lines: filepath.Join(dir, "ledger.ndjson"),
		config: feed.Config{Accounts: max(env.Scaled(ingestAccounts), updates), Updates: updates, Tokens: ingestTokens},
	}
	s.blocks = max(env.Scaled(ingestBlocks), ingestLeast)
	if err := s.write(); err != nil {
		return nil, err
	}
	for round := range env.Rounds {
		for _, turn := range []struct {
			subject string
			run     func() error
		}{
			{fromEvents, func() error { return s.read(ctx, fromEvents, s.events) }},
			{fromLines, func() error { return s.read(ctx, fromLines, s.lines) }},
			{fromRedis, func() error { return s.pipe(ctx) }},
		} {
			if err := turn.run(); err != nil {
				return nil, fmt.Errorf("%s: %w", turn.subject, err)
			}
			if s.result.measured(turn.subject) {
				env.Say("ingest round %d: %s: %s updates/s", round+1, turn.subject, thousands(s.result.Row(turn.subject).last("updates")))
			}
		}
	}
	s.goals()
	return s.result, nil
}

// write writes both files.
func (s *ingestRun) write() (err error) {
	s.env.Say("ingest: writing a ledger of %d accounts and %d blocks of %d updates", s.config.Accounts, s.blocks, s.config.Updates)
	if s.newest, err = writeLedger(s.events, s.config, s.blocks); err != nil {
		return err
	}
	events, err := os.Open(s.events)
	if err != nil {
		return err
	}
	defer events.Close()
	return writeFile(s.lines, func(w io.Writer) error { return writeLines(w, events) })
}

// updates returns how many there are in the blocks behind one up to another.
func (s *ingestRun) updates(from, to ledger.Slot) float64 {
	return float64(to-from) * float64(s.config.Updates)
}

// read has a server read a file for one round. What is timed begins when the server is first
// seen to have published a block, and ends when it has published the last.
func (s *ingestRun) read(ctx context.Context, subject, path string) error {
	r, err := startReading(ctx, s.env, "", path, "--snapshot-interval", "0")
	if err != nil {
		return err
	}
	defer r.Kill()
	first, err := r.await(ctx, time.Millisecond, func(m map[string]float64) bool { return m[processedSlot] >= float64(feed.FirstSlot) })
	if err != nil {
		return err
	}
	before, err := r.Usage()
	if err != nil {
		return err
	}
	last, err := r.await(ctx, ingestLook, func(m map[string]float64) bool { return m[processedSlot] >= float64(s.newest) })
	if err != nil {
		return err
	}
	after, err := r.Usage()
	if err != nil {
		return err
	}
	if err := s.check(ctx, r, last.metrics); err != nil {
		return err
	}
	from := ledger.Slot(first.metrics[processedSlot])
	if from == s.newest {
		return errors.New("the ledger is too small to be timed: all of it was read at once")
	}
	updates, took := s.updates(from, s.newest), last.told.Sub(first.asked).Seconds()
	since := func(metric string) float64 { return last.metrics[metric] - first.metrics[metric] }
	row := s.note(subject, updates, took, before, after)
	row.Add("log", "MB/s", since("ledgerd_log_written_bytes_total")/took/1e6)
	row.Add("fsyncs", "fsyncs/s", since("ledgerd_log_fsync_duration_seconds_count")/took)
	row.Add("base state, with the start", "accounts/s", float64(s.config.Accounts)/first.told.Sub(r.began).Seconds())
	return nil
}

// note notes how fast somebody was, and what that took.
func (s *ingestRun) note(subject string, updates, took float64, before, after proc.Usage) *Row {
	row := s.result.Row(subject)
	cpu := (after.CPU() - before.CPU()).Seconds()
	row.Add("updates", "updates/s", updates/took)
	row.Add("CPU of each", "µs/update", cpu*1e6/updates)
	row.Add("CPU", "cores", cpu/took)
	row.Add("memory", "MiB", float64(after.RSSBytes)/(1<<20))
	return row
}

// check checks that the server has all of the ledger, on the disk too.
func (s *ingestRun) check(ctx context.Context, r *reading, m map[string]float64) error {
	if got, want := m["ledgerd_seq"], s.updates(feed.FirstSlot, s.newest); got != want {
		return fmt.Errorf("ledgerd counts %.0f updates, not %.0f", got, want)
	}
	if got := m["ledgerd_log_durable_slot"]; got < float64(s.newest) {
		return fmt.Errorf("ledgerd shows block %d when block %.0f is durable", s.newest, got)
	}
	index := slices.Collect(s.config.Indexes(s.newest))[0]
	return answers(ctx, r.Server, s.config.Account(index, s.newest))
}

// pipe has redis keep the same updates for one round.
func (s *ingestRun) pipe(ctx context.Context) error {
	dir, remove, err := dataDir(s.env, "redis")
	if err != nil {
		return err
	}
	defer remove()
	r, err := startRedis(ctx, s.env, s.result, dir, "--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	if r == nil {
		return err
	}
	defer func() { _ = r.Stop() }()
	set := &setter{config: s.config}
	if err := set.fill(r, false); err != nil {
		return err
	}
	before, err := proc.UsageOf(r.Pid())
	if err != nil {
		return err
	}
	began, slot := time.Now(), feed.FirstSlot
	err = r.Pipe(func(dst []byte) ([]byte, int) {
		if slot == s.newest {
			return dst, 0
		}
		slot++
		for index := range s.config.Indexes(slot) {
			dst = set.set(dst, index, slot)
		}
		return dst, s.config.Updates
	})
	took := time.Since(began).Seconds()
	if err != nil {
		return err
	}
	after, err := proc.UsageOf(r.Pid())
	if err != nil {
		return err
	}
	for index := range s.config.Indexes(s.newest) {
		if err := set.holds(r, index, s.newest); err != nil {
			return err
		}
	}
	s.note(fromRedis, s.updates(feed.FirstSlot, s.newest), took, before, after)
	return nil
}

func (s *ingestRun) goals() {
	rate := func(subject string) float64 { return s.result.median(subject, "updates") }
	s.result.Goals = append(s.result.Goals,
		Goal{What: "millions of durable updates a second from an event file", Value: rate(fromEvents) / 1e6, Limit: 1, Least: true})
	if s.result.measured(fromRedis) {
		s.result.Goals = append(s.result.Goals,
			Goal{What: "updates from an event file, of those of redis with its log synced every second", Value: ratio(rate(fromEvents), rate(fromRedis)), Limit: 3, Least: true})
	}
	s.result.Goals = append(s.result.Goals,
		Goal{What: "thousands of durable updates a second from NDJSON", Value: rate(fromLines) / 1e3, Limit: 400, Least: true})
	s.result.Notes = append(s.result.Notes,
		fmt.Sprintf("%d accounts, %d of 100 hold tokens; %d blocks of %d updates; each block is synced before it is seen (--wal-sync always), many with one sync.",
			s.config.Accounts, s.config.Tokens, s.newest-feed.FirstSlot, s.config.Updates),
		"Timed is from the first block seen published to the last, by asking for the metrics.")
}
