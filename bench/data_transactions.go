package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/engine/ledger"
)

// transactions has a server hold transactions, and the same blocks without them. What is asked is
// what one takes.
var transactions = Scenario{
	Name: "transactions",
	Help: "What a transaction with 12 accounts takes of the memory that is held: after they were read, and after a restart.",
	Own:  "it must know what is held, and when",
	Run: func(ctx context.Context, env *Env) (*Result, error) {
		return runTransactions(ctx, env, transactionBlocks)
	},
}

const (
	transactionAccounts = 200_000 // that transactions name
	transactionBlocks   = 1000
	transactionsOfBlock = 1000

	transactionMostBytes = 350 // for each
)

// transactionRun is one run of the scenario.
type transactionRun struct {
	env    *Env
	result *Result
	config feed.Config // with transactions
	blocks int         // behind the first
}

func runTransactions(ctx context.Context, env *Env, blocks int) (*Result, error) {
	s := &transactionRun{
		env: env, result: &Result{Scenario: "transactions"}, blocks: env.Scaled(blocks),
		config: feed.Config{Accounts: env.Scaled(transactionAccounts), Transactions: transactionsOfBlock, Finality: dataFinality},
	}
	empty := s.config
	empty.Transactions = 0
	for round := range env.Rounds {
		without, err := s.hold(ctx, empty)
		if err != nil {
			return nil, err
		}
		with, err := s.hold(ctx, s.config)
		if err != nil {
			return nil, err
		}
		for i, state := range memoryStates {
			row := s.result.Row(state)
			each := func(bytes int64) float64 { return float64(bytes) / float64(s.held()) }
			row.Add("more than without transactions", "B/transaction", each(with[i].rss-without[i].rss))
			row.Add("heap, with garbage, more than without", "B/transaction", each(with[i].heap-without[i].heap))
			row.Add("all that is resident", "MiB", float64(with[i].rss)/(1<<20))
			row.Add("resident without transactions", "MiB", float64(without[i].rss)/(1<<20))
		}
		env.Say("transactions round %d: %.0f bytes each after reading, %.0f after a restart", round+1,
			s.result.Row(memoryStates[0]).last("more than without transactions"), s.result.Row(memoryStates[1]).last("more than without transactions"))
	}
	for _, state := range memoryStates {
		s.result.Goals = append(s.result.Goals, Goal{
			What:  fmt.Sprintf("bytes resident for each of %s transactions with 12 accounts, %s", thousands(float64(s.held())), state),
			Value: s.result.median(state, "more than without transactions"), Limit: transactionMostBytes,
		})
	}
	s.result.Notes = append(s.result.Notes,
		fmt.Sprintf("%d blocks of %d transactions, which name %d accounts in turns. Counted is what is resident more than with the same accounts and blocks, and no transactions.", s.blocks+1, s.config.Transactions, s.config.Accounts),
		"ledgerd has taken a snapshot before its memory is read for the first time.")
	return s.result, nil
}

// held is how many transactions there are.
func (s *transactionRun) held() int { return (s.blocks + 1) * s.config.Transactions }

// occupied is what a server takes of the memory, in bytes.
type occupied struct{ rss, heap int64 }

// hold has a server hold a ledger, and returns what that takes in each state.
func (s *transactionRun) hold(ctx context.Context, c feed.Config) (found [len(memoryStates)]occupied, err error) {
	dir, remove, err := dataDir(s.env, "transactions")
	if err != nil {
		return found, err
	}
	defer remove()
	path, kept := filepath.Join(dir, "ledger.events"), filepath.Join(dir, "ledgerd")
	newest, err := writeLedger(path, c, s.blocks)
	if err != nil {
		return found, err
	}
	retain := []string{"--retain-slots", strconv.Itoa(s.blocks + 2), "--retain-bytes", "64GiB"}
	r, err := keep(ctx, s.env, kept, path, newest, retain...)
	if err != nil {
		return found, err
	}
	defer r.Kill()
	if found[0], err = s.occupied(ctx, r.Server, c); err != nil {
		return found, err
	}
	server, _, err := restart(ctx, s.env, kept, c.Account(0, feed.FirstSlot-1), retain...)
	if err != nil {
		return found, err
	}
	defer server.Kill()
	found[1], err = s.occupied(ctx, server, c)
	return found, err
}

// occupied reads the memory of a server that has settled, checks that all is in it, and stops it.
func (s *transactionRun) occupied(ctx context.Context, server *proc.Server, c feed.Config) (o occupied, err error) {
	if err := rest(ctx, memorySettle*s.env.Duration); err != nil {
		return o, err
	}
	usage, err := server.Usage() // before the server is asked, which takes memory
	if err != nil {
		return o, err
	}
	m, err := server.Metrics()
	if err != nil {
		return o, err
	}
	if got, want := proc.Sum(m, "ledgerd_transactions"), float64((s.blocks+1)*c.Transactions); got != want {
		return o, fmt.Errorf("ledgerd holds %.0f transactions, not %.0f", got, want)
	}
	if got := m[processedSlot]; got != float64(feed.FirstSlot+ledger.Slot(s.blocks)) {
		return o, fmt.Errorf("ledgerd is at slot %.0f", got)
	}
	return occupied{usage.RSSBytes, int64(m["go_memstats_heap_inuse_bytes"])}, server.Stop()
}
