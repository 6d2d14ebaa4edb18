package bench

import (
	"context"
	"fmt"
	"path/filepath"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
)

// Memory returns the scenarios of so many accounts, and of transactions, that are held.
func Memory(accounts int) []Scenario {
	return []Scenario{{
		Name: "memory",
		Help: "What an account takes of the memory with all indexes, 30 % of them hold tokens: after they were read, and after a restart.",
		Own:  "it must know what is held, and when",
		Run:  func(ctx context.Context, env *Env) (*Result, error) { return runMemory(ctx, env, env.Scaled(accounts)) },
	}, transactions}
}

const (
	memoryTokens = 30
	// memorySettle is how long a server is left alone before its memory is read, in durations of
	// a measurement: at the usual 10 s, half a minute.
	memorySettle = 3

	memoryMostBytes = 160 // for each account
	memoryAgainst   = 0.6 // of what redis takes
)

// The states in which memory is read.
var memoryStates = [...]string{"after reading", "after a restart"}

// memoryAlone is the subject of a server with one account.
const memoryAlone = "ledgerd, one account"

// memoryRun is one run of the scenario.
type memoryRun struct {
	env    *Env
	result *Result
	config feed.Config
}

func runMemory(ctx context.Context, env *Env, accounts int) (*Result, error) {
	s := &memoryRun{env: env, result: &Result{Scenario: "memory"}, config: feed.Config{Accounts: accounts, Tokens: memoryTokens, Finality: dataFinality}}
	for round := range env.Rounds {
		if err := s.alone(ctx); err != nil {
			return nil, err
		}
		if err := s.ledgerd(ctx); err != nil {
			return nil, err
		}
		if err := s.redis(ctx); err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		env.Say("memory round %d: %.0f bytes an account after reading, %.0f after a restart", round+1,
			s.result.Row("ledgerd, "+memoryStates[0]).last("resident"), s.result.Row("ledgerd, "+memoryStates[1]).last("resident"))
	}
	s.goals()
	return s.result, nil
}

// alone reads the memory of a ledgerd that has next to nothing to hold.
func (s *memoryRun) alone(ctx context.Context) error {
	dir, remove, err := dataDir(s.env, "memory")
	if err != nil {
		return err
	}
	defer remove()
	path := filepath.Join(dir, "ledger.events")
	newest, err := writeLedger(path, feed.Config{Accounts: 1, Finality: dataFinality}, dataBlocks)
	if err != nil {
		return err
	}
	r, err := keep(ctx, s.env, filepath.Join(dir, "ledgerd"), path, newest)
	if err != nil {
		return err
	}
	defer r.Kill()
	if err := rest(ctx, s.env.Duration); err != nil {
		return err
	}
	usage, err := r.Usage()
	if err != nil {
		return err
	}
	s.result.Row(memoryAlone).Add("all that is resident", "MiB", float64(usage.RSSBytes)/(1<<20))
	return r.Stop()
}

// ledgerd reads the memory of a ledgerd once in each state.
func (s *memoryRun) ledgerd(ctx context.Context) error {
	dir, remove, err := dataDir(s.env, "memory")
	if err != nil {
		return err
	}
	defer remove()
	path, held := filepath.Join(dir, "ledger.events"), filepath.Join(dir, "ledgerd")
	newest, err := writeLedger(path, s.config, dataBlocks)
	if err != nil {
		return err
	}
	r, err := keep(ctx, s.env, held, path, newest)
	if err != nil {
		return err
	}
	defer r.Kill()
	if err := s.server(ctx, memoryStates[0], r.Server); err != nil {
		return err
	}
	server, _, err := restart(ctx, s.env, held, s.config.Account(0, feed.FirstSlot-1))
	if err != nil {
		return err
	}
	defer server.Kill()
	return s.server(ctx, memoryStates[1], server)
}

// server reads the memory of a server that has settled, checks that all is in it, and stops it.
func (s *memoryRun) server(ctx context.Context, state string, server *proc.Server) error {
	if err := rest(ctx, memorySettle*s.env.Duration); err != nil {
		return err
	}
	usage, err := server.Usage() // before the server is asked, which takes memory
	if err != nil {
		return err
	}
	m, err := server.Metrics()
	if err != nil {
		return err
	}
	tokens := 0
	for i := range s.config.Accounts {
		if s.config.HoldsTokens(i) {
			tokens++
		}
	}
	if got := proc.Sum(m, "ledgerd_accounts"); got != float64(s.config.Accounts) {
		return fmt.Errorf("ledgerd holds %.0f accounts, not %d", got, s.config.Accounts)
	}
	if got := proc.Sum(m, "ledgerd_token_accounts"); got != float64(tokens) {
		return fmt.Errorf("ledgerd holds %.0f token accounts, not %d", got, tokens)
	}
	without := s.result.Row(memoryAlone).last("all that is resident") * (1 << 20)
	row := s.note("ledgerd, "+state, usage.RSSBytes)
	row.Add("more than without accounts", "B/account", (float64(usage.RSSBytes)-without)/float64(s.config.Accounts))
	row.Add("heap, with garbage", "B/account", m["go_memstats_heap_inuse_bytes"]/float64(s.config.Accounts))
	row.Add("heap given back", "B/account", m["go_memstats_heap_released_bytes"]/float64(s.config.Accounts))
	return server.Stop()
}

// redis reads the memory of a redis-server once in each state.
func (s *memoryRun) redis(ctx context.Context) error {
	dir, remove, err := dataDir(s.env, "redis")
	if err != nil {
		return err
	}
	defer remove()
	for i, state := range memoryStates {
		r, err := startRedis(ctx, s.env, s.result, dir)
		if r == nil {
			return err
		}
		if i == 0 {
			err = (&setter{config: s.config}).fill(r, true)
		}
		if err == nil {
			err = s.resident(ctx, state, r)
		}
		if err == nil && i == 0 {
			_, err = r.Do("SAVE") // a process of its own would not do for the next state
		}
		if stopped := r.Stop(); err == nil {
			err = stopped
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// resident reads the memory of a redis-server that has settled.
func (s *memoryRun) resident(ctx context.Context, state string, r *peer.Redis) error {
	if err := rest(ctx, s.env.Duration); err != nil {
		return err
	}
	usage, err := proc.UsageOf(r.Pid())
	if err != nil {
		return err
	}
	s.note("redis, "+state, usage.RSSBytes)
	return (&setter{config: s.config}).holds(r, s.config.Accounts/3, feed.FirstSlot-1)
}

func (s *memoryRun) note(subject string, rssBytes int64) *Row {
	row := s.result.Row(subject)
	row.Add("resident", "B/account", float64(rssBytes)/float64(s.config.Accounts))
	row.Add("all that is resident", "MiB", float64(rssBytes)/(1<<20))
	return row
}

func (s *memoryRun) goals() {
	for _, state := range memoryStates {
		ours := s.result.median("ledgerd, "+state, "resident")
		s.result.Goals = append(s.result.Goals, Goal{
			What:  fmt.Sprintf("bytes resident for each of %s accounts, %s", thousands(float64(s.config.Accounts)), state),
			Value: ours, Limit: memoryMostBytes,
		})
		if redis := "redis, " + state; s.result.measured(redis) {
			s.result.Goals = append(s.result.Goals, Goal{
				What: "the same, of what redis takes with the same indexes, " + state, Value: ratio(ours, s.result.median(redis, "resident")), Limit: memoryAgainst,
			})
		}
	}
	s.result.Notes = append(s.result.Notes,
		fmt.Sprintf("An account is %.0f bytes, key and value, without any index. The goal is for 10,000,000 accounts: with fewer, what a server takes by itself weighs more.", payloadBytes(s.config)),
		"ledgerd has taken a snapshot before its memory is read for the first time.",
		"redis keeps each account under its key, the accounts of a program in a set, and the token accounts of a wallet in a sorted set, which is packed.")
}
