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

	transactionAccounts = 200_000 // that transactions name
	transactionBlocks   = 1000
	transactionsOfBlock = 1000
)

func runMemory(ctx context.Context, r *Run) error {
	c := feed.Config{Accounts: r.Scaled(memoryAccounts), Tokens: memoryTokens, Finality: dataFinality}
	tokens := c.Accounts/100*c.Tokens + min(c.Accounts%100, c.Tokens)
	record := func(subject string, s standing) {
		n := float64(c.Accounts)
		r.Record(subject, c.Accounts, report.Figure{Unit: "B/account", Value: float64(s.RSSBytes) / n},
			report.Figure{Unit: "heap-B/account", Value: s.metrics[heapBytes] / n}, report.Figure{Unit: "MiB", Value: s.rssMiB()})
	}
	subjects := []func() error{func() error {
		read, restarted, err := r.held(ctx, c, dataBlocks, map[string]int{"ledgerd_accounts": c.Accounts, "ledgerd_token_accounts": tokens})
		if err == nil {
			record("ledgerd-read", read)
			record("ledgerd-restarted", restarted)
		}
		return err
	}}
	r.Note("an account is %.0f bytes, key and value, without any index; %d of 100 hold tokens; ledgerd has taken a snapshot before its memory is read", payloadBytes(c), c.Tokens)
	if r.hasRedis() {
		r.Note("Redis keeps accounts under keys of their own or, in buckets, as fields of packed hashes of %d; the accounts of a program in a set, the token accounts of a wallet in a packed sorted set", bucketAccounts)
		for _, name := range []string{"redis-keys", "redis-buckets"} {
			subjects = append(subjects, func() error {
				filled, restarted, err := r.heldByRedis(ctx, &store{config: c, bucketed: name == "redis-buckets"})
				if err == nil {
					record(name+"-filled", filled)
					record(name+"-restarted", restarted)
				}
				return err
			})
		}
	}
	return turnsOf(r, memoryRounds, subjects, func(measure func() error) error { return measure() })
}

// runTransactions has a server hold transactions, and the same blocks without them: what counts is the difference.
func runTransactions(ctx context.Context, r *Run) error {
	c := feed.Config{Accounts: r.Scaled(transactionAccounts), Transactions: transactionsOfBlock, Finality: dataFinality}
	empty := c
	empty.Transactions = 0
	blocks := r.Scaled(transactionBlocks)
	held := (blocks + 1) * c.Transactions
	retain := []string{"--retain-slots", strconv.Itoa(blocks + 2), "--retain-bytes", "64GiB"}
	record := func(subject string, with, without standing) {
		n := float64(held)
		r.Record(subject, held, report.Figure{Unit: "B/transaction", Value: float64(with.RSSBytes-without.RSSBytes) / n},
			report.Figure{Unit: "heap-B/transaction", Value: (with.metrics[heapBytes] - without.metrics[heapBytes]) / n})
	}
	r.Note("%d transactions, which name %d accounts in turns; counted is what is resident more than with the same accounts and blocks", held, c.Accounts)
	return turnsOf(r, memoryRounds, []string{"ledgerd"}, func(subject string) error {
		read0, restarted0, err := r.held(ctx, empty, blocks, map[string]int{"ledgerd_transactions": 0}, retain...)
		if err != nil {
			return err
		}
		read, restarted, err := r.held(ctx, c, blocks, map[string]int{"ledgerd_transactions": held}, retain...)
		if err == nil {
			record(subject+"-read", read, read0)
			record(subject+"-restarted", restarted, restarted0)
		}
		return err
	})
}

// held has a ledgerd hold a ledger, and returns what that takes after it was read and after a restart. The metrics must be as wanted.
func (r *Run) held(ctx context.Context, c feed.Config, blocks int, want map[string]int, flags ...string) (read, restarted standing, err error) {
	dir, err := r.tempDir()
	if err != nil {
		return read, restarted, err
	}
	path, kept := filepath.Join(dir, "ledger.events"), filepath.Join(dir, "ledgerd")
	newest, err := writeLedger(path, c, blocks)
	if err != nil {
		return read, restarted, err
	}
	server, err := keep(ctx, r, kept, path, newest, flags...)
	if err == nil {
		read, err = r.settled(ctx, server, newest, want)
	}
	if err != nil {
		return read, restarted, err
	}
	if server, _, err = restart(ctx, r, kept, c.Account(0, feed.FirstSlot-1), flags...); err == nil {
		restarted, err = r.settled(ctx, server, newest, want)
	}
	return read, restarted, err
}

// settled reads the memory of a server that was left alone for a while, checks that all is in it, and stops it.
func (r *Run) settled(ctx context.Context, server *proc.Server, newest ledger.Slot, want map[string]int) (standing, error) {
	s, err := r.atRest(ctx, server)
	if err != nil {
		return s, err
	}
	for name, n := range want {
		if got := proc.Sum(s.metrics, name); got != float64(n) {
			return s, fmt.Errorf("ledgerd tells of %.0f %s, not %d", got, name, n)
		}
	}
	if got := s.metrics[processedSlot]; got != float64(newest) {
		return s, fmt.Errorf("ledgerd is at slot %.0f, not %d", got, newest)
	}
	return s, server.Stop()
}

// heldByRedis has a redis-server hold the accounts and their indexes.
func (r *Run) heldByRedis(ctx context.Context, s *store) (filled, restarted standing, err error) {
	dir, err := r.tempDir()
	if err != nil {
		return filled, restarted, err
	}
	for _, m := range []*standing{&filled, &restarted} {
		if s.Redis, err = peer.StartRedis(ctx, dir, bucketOptions...); err != nil {
			return filled, restarted, err
		}
		if m == &filled {
			err = s.fill()
		}
		if err == nil {
			*m, err = r.redisSettled(ctx, s)
		}
		if err == nil && m == &filled {
			_, err = s.Do("SAVE") // a process of its own would not do for the restart
		}
		if err = errors.Join(err, s.Stop()); err != nil {
			return filled, restarted, err
		}
	}
	return filled, restarted, nil
}

func (r *Run) redisSettled(ctx context.Context, s *store) (m standing, err error) {
	if err := rest(ctx, settleRounds*r.Duration); err != nil {
		return m, err
	}
	m.Usage, err = proc.UsageOf(s.Pid())
	return m, errors.Join(err, s.holds(s.config.Accounts/3, feed.FirstSlot-1))
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
