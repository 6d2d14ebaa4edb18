package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

const (
	memoryAccounts = 10_000_000
	memoryTokens   = 30 // of a hundred accounts
	memoryRounds   = 2  // at most: the memory hardly differs from round to round
	// memorySettle is how long a server is left alone before its memory is read, in durations of a measurement.
	memorySettle = 3

	transactionAccounts = 200_000 // that transactions name
	transactionBlocks   = 1000
	transactionsOfBlock = 1000
)

// memory is what a process takes, in bytes.
type memory struct{ rss, heap float64 }

func runMemory(ctx context.Context, r *Run) error {
	c := feed.Config{Accounts: r.Scaled(memoryAccounts), Tokens: memoryTokens, Finality: dataFinality}
	tokens := 0
	for i := range c.Accounts {
		if c.HoldsTokens(i) {
			tokens++
		}
	}
	record := func(subject string, m memory) error {
		n := float64(c.Accounts)
		return r.Record(subject, c.Accounts, report.Figure{Unit: "B/account", Value: m.rss / n},
			report.Figure{Unit: "heap-B/account", Value: m.heap / n}, report.Figure{Unit: "MiB", Value: m.rss / (1 << 20)})
	}
	for range min(r.Rounds, memoryRounds) {
		read, restarted, err := r.held(ctx, c, dataBlocks, map[string]int{"ledgerd_accounts": c.Accounts, "ledgerd_token_accounts": tokens})
		if err != nil {
			return err
		}
		if err := errors.Join(record("ledgerd-read", read), record("ledgerd-restarted", restarted)); err != nil {
			return err
		}
		for _, s := range []*store{{config: c}, {config: c, bucketed: true}} {
			if !r.Peers {
				break
			}
			name := map[bool]string{false: "redis-keys", true: "redis-buckets"}[s.bucketed]
			filled, restarted, err := r.heldByRedis(ctx, s)
			if err != nil {
				return err
			}
			if err := errors.Join(record(name+"-filled", filled), record(name+"-restarted", restarted)); err != nil {
				return err
			}
		}
	}
	return errors.Join(
		r.Note("an account is %.0f bytes, key and value, without any index; %d of 100 hold tokens; ledgerd has taken a snapshot before its memory is read", payloadBytes(c), c.Tokens),
		r.Note("Redis keeps accounts under keys of their own or, in buckets, as fields of packed hashes of %d; the accounts of a program in a set, the token accounts of a wallet in a packed sorted set", bucketAccounts))
}

// runTransactions has a server hold transactions, and the same blocks without them: what counts is the difference.
func runTransactions(ctx context.Context, r *Run) error {
	c := feed.Config{Accounts: r.Scaled(transactionAccounts), Transactions: transactionsOfBlock, Finality: dataFinality}
	blocks := r.Scaled(transactionBlocks)
	held := (blocks + 1) * c.Transactions
	retain := []string{"--retain-slots", strconv.Itoa(blocks + 2), "--retain-bytes", "64GiB"}
	record := func(subject string, with, without memory) error {
		n := float64(held)
		return r.Record(subject, held, report.Figure{Unit: "B/transaction", Value: (with.rss - without.rss) / n},
			report.Figure{Unit: "heap-B/transaction", Value: (with.heap - without.heap) / n})
	}
	for range min(r.Rounds, memoryRounds) {
		empty := c
		empty.Transactions = 0
		read0, restarted0, err := r.held(ctx, empty, blocks, map[string]int{"ledgerd_transactions": 0}, retain...)
		if err != nil {
			return err
		}
		read, restarted, err := r.held(ctx, c, blocks, map[string]int{"ledgerd_transactions": held}, retain...)
		if err != nil {
			return err
		}
		if err := errors.Join(record("ledgerd-read", read, read0), record("ledgerd-restarted", restarted, restarted0)); err != nil {
			return err
		}
	}
	return r.Note("%d transactions, which name %d accounts in turns; counted is what is resident more than with the same accounts and blocks", held, c.Accounts)
}

// held has a ledgerd hold a ledger, and returns what that takes after it was read and after a restart. The metrics must be as wanted.
func (r *Run) held(ctx context.Context, c feed.Config, blocks int, want map[string]int, args ...string) (read, restarted memory, err error) {
	dir, remove, err := r.TempDir()
	if err != nil {
		return read, restarted, err
	}
	defer remove()
	path, kept := filepath.Join(dir, "ledger.events"), filepath.Join(dir, "ledgerd")
	newest, err := writeLedger(path, c, blocks)
	if err != nil {
		return read, restarted, err
	}
	server, err := keep(ctx, r, kept, path, newest, args...)
	if err != nil {
		return read, restarted, err
	}
	defer server.Kill()
	if read, err = r.settled(ctx, server, newest, want); err != nil {
		return read, restarted, err
	}
	again, _, err := restart(ctx, r, kept, c.Account(0, feed.FirstSlot-1), args...)
	if err != nil {
		return read, restarted, err
	}
	defer again.Kill()
	restarted, err = r.settled(ctx, again, newest, want)
	return read, restarted, err
}

// settled reads the memory of a server that was left alone for a while, checks that all is in it, and stops it.
func (r *Run) settled(ctx context.Context, server *proc.Server, newest ledger.Slot, want map[string]int) (m memory, err error) {
	if err := rest(ctx, memorySettle*r.Duration); err != nil {
		return m, err
	}
	used, err := server.Usage() // before the server is asked, which takes memory
	if err != nil {
		return m, err
	}
	metrics, err := server.Metrics()
	if err != nil {
		return m, err
	}
	for name, n := range want {
		if got := proc.Sum(metrics, name); got != float64(n) {
			return m, fmt.Errorf("ledgerd tells of %.0f %s, not %d", got, name, n)
		}
	}
	if got := metrics[processedSlot]; got != float64(newest) {
		return m, fmt.Errorf("ledgerd is at slot %.0f, not %d", got, newest)
	}
	return memory{float64(used.RSSBytes), metrics["go_memstats_heap_inuse_bytes"]}, server.Stop()
}

// heldByRedis has a redis-server hold the accounts and their indexes.
func (r *Run) heldByRedis(ctx context.Context, s *store) (filled, restarted memory, err error) {
	dir, remove, err := r.TempDir()
	if err != nil {
		return filled, restarted, err
	}
	defer remove()
	for i, m := range []*memory{&filled, &restarted} {
		if s.Redis, err = peer.StartRedis(ctx, dir, bucketOptions...); err != nil {
			return filled, restarted, err
		}
		if i == 0 {
			err = s.fill()
		}
		if err == nil {
			*m, err = r.redisSettled(ctx, s)
		}
		if err == nil && i == 0 {
			_, err = s.Do("SAVE") // a process of its own would not do for the restart
		}
		if err = errors.Join(err, s.Stop()); err != nil {
			return filled, restarted, err
		}
	}
	return filled, restarted, nil
}

func (r *Run) redisSettled(ctx context.Context, s *store) (m memory, err error) {
	if err := rest(ctx, memorySettle*r.Duration); err != nil {
		return m, err
	}
	used, err := proc.UsageOf(s.Pid())
	return memory{rss: float64(used.RSSBytes)}, errors.Join(err, s.holds(s.config.Accounts/3, feed.FirstSlot-1))
}

// payloadBytes returns what an account takes on average, key and value without any index.
func payloadBytes(c feed.Config) float64 {
	const sample = 1000
	sum := 0
	for i := range sample {
		a := c.Account(i, feed.FirstSlot)
		sum += len(a.Pubkey) + len(appendValue(nil, &a, feed.FirstSlot))
	}
	return float64(sum) / sample
}
