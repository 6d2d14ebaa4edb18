package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
)

// Recover returns the scenario of a start with so many accounts in the data directory.
func Recover(accounts int) []Scenario {
	return []Scenario{{
		Name: "recover",
		Help: "How long a start takes, from the process to the first right answer, with accounts of which 30 % hold tokens, and 50 %.",
		Own:  "it starts one again and again",
		Run: func(ctx context.Context, env *Env) (*Result, error) {
			return runRecover(ctx, env, env.Scaled(accounts))
		},
	}}
}

// What a start is to take, whatever the share of token accounts.
const (
	recoverLeast      = 2.5 // million accounts a second
	recoverAgainst    = 2   // times as many as redis
	recoverMany       = 10_000_000
	recoverManyWithin = 6 * time.Second
)

// recovery is a ledger that lies in a data directory of ledgerd's and, if asked for, in one of
// redis'.
type recovery struct {
	env          *Env
	result       *Result
	config       feed.Config
	dir          string
	newest       ledger.Slot
	ours, theirs string // subjects: ledgerd, redis
}

func runRecover(ctx context.Context, env *Env, accounts int) (*Result, error) {
	result := &Result{Scenario: "recover"}
	var all []*recovery
	for _, tokens := range []int{30, 50} {
		dir, remove, err := dataDir(env, "recover")
		if err != nil {
			return nil, err
		}
		defer remove()
		s := &recovery{
			env: env, result: result, dir: dir,
			config: feed.Config{Accounts: accounts, Tokens: tokens, Finality: dataFinality},
			ours:   fmt.Sprintf("ledgerd, %d %% tokens", tokens), theirs: fmt.Sprintf("redis, %d %% tokens", tokens),
		}
		if err := s.prepare(ctx); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	for round := range env.Rounds {
		for _, s := range all {
			if err := s.measure(ctx); err != nil {
				return nil, err
			}
			env.Say("recover round %d: %s: %.2f s", round+1, s.ours, result.Row(s.ours).last("start"))
		}
	}
	for _, s := range all {
		s.goals()
	}
	result.Notes = append(result.Notes,
		fmt.Sprintf("%d accounts, in a snapshot. What is read was written just before and comes from the kernel's memory, not from the disk.", accounts),
		"redis loads as many keys of the same bytes from its RDB file, without any index.")
	return result, nil
}

// prepare leaves the ledger on the disk.
func (s *recovery) prepare(ctx context.Context) (err error) {
	s.env.Say("recover: writing %d accounts, of which %d %% hold tokens", s.config.Accounts, s.config.Tokens)
	path := filepath.Join(s.dir, "ledger.events")
	if s.newest, err = writeLedger(path, s.config, dataBlocks); err != nil {
		return err
	}
	r, err := keep(ctx, s.env, filepath.Join(s.dir, "ledgerd"), path, s.newest)
	if err != nil {
		return err
	}
	if err := r.Stop(); err != nil {
		return err
	}
	redis, err := startRedis(ctx, s.env, s.result, s.dir)
	if redis == nil {
		return err
	}
	err = (&setter{config: s.config}).fill(redis, false)
	if err == nil {
		_, err = redis.Do("SAVE")
	}
	if stopped := redis.Stop(); err == nil {
		err = stopped
	}
	return err
}

// asked is the account that both are asked about.
func (s *recovery) asked() int { return s.config.Accounts / 3 }

// measure starts both once.
func (s *recovery) measure(ctx context.Context) error {
	want := s.config.Account(s.asked(), feed.FirstSlot-1)
	server, took, err := restart(ctx, s.env, filepath.Join(s.dir, "ledgerd"), want)
	if err != nil {
		return err
	}
	defer server.Kill()
	usage, err := server.Usage()
	if err != nil {
		return err
	}
	s.note(s.ours, took, usage.CPU())
	if err := server.Stop(); err != nil || !s.env.Peers {
		return err
	}
	return s.measureRedis(ctx)
}

func (s *recovery) measureRedis(ctx context.Context) error {
	began := time.Now()
	redis, err := startRedis(ctx, s.env, s.result, s.dir)
	if redis == nil {
		return err
	}
	err = (&setter{config: s.config}).holds(redis, s.asked(), feed.FirstSlot-1)
	took := time.Since(began)
	if err == nil {
		err = s.noteRedis(redis, took)
	}
	if stopped := redis.Stop(); err == nil {
		err = stopped
	}
	return err
}

func (s *recovery) noteRedis(redis *peer.Redis, took time.Duration) error {
	usage, err := proc.UsageOf(redis.Pid())
	if err != nil {
		return err
	}
	s.note(s.theirs, took, usage.CPU())
	return nil
}

func (s *recovery) note(subject string, took, cpu time.Duration) {
	row := s.result.Row(subject)
	row.Add("start", "s", took.Seconds())
	row.Add("accounts", "accounts/s", float64(s.config.Accounts)/took.Seconds())
	row.Add("CPU of each", "µs/account", cpu.Seconds()*1e6/float64(s.config.Accounts))
}

func (s *recovery) goals() {
	rate := s.result.median(s.ours, "accounts")
	s.result.Goals = append(s.result.Goals,
		Goal{What: fmt.Sprintf("millions of accounts a second, %d %% tokens", s.config.Tokens), Value: rate / 1e6, Limit: recoverLeast, Least: true})
	if s.result.measured(s.theirs) {
		s.result.Goals = append(s.result.Goals, Goal{
			What:  fmt.Sprintf("accounts a second, of those of redis, %d %% tokens", s.config.Tokens),
			Value: ratio(rate, s.result.median(s.theirs, "accounts")), Limit: recoverAgainst, Least: true,
		})
	}
	if s.config.Accounts >= recoverMany {
		s.result.Goals = append(s.result.Goals, Goal{
			What:  fmt.Sprintf("seconds to the first right answer with %s accounts, %d %% tokens", thousands(float64(s.config.Accounts)), s.config.Tokens),
			Value: s.result.median(s.ours, "start"), Limit: recoverManyWithin.Seconds() * float64(s.config.Accounts) / recoverMany,
		})
	}
}
