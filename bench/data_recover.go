package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
)

const recoverAccounts = 3_000_000

// recovery is a ledger that lies in a data directory of ledgerd's and, if asked for, in one of Redis'.
type recovery struct {
	*Run
	config feed.Config
	dir    string
	redis  bool // is measured too
}

func runRecover(ctx context.Context, r *Run) error {
	r.Note("%d accounts in a snapshot; what is read was written just before and comes from the kernel's memory, not from the disk", r.Scaled(recoverAccounts))
	redis := r.hasRedis()
	if redis {
		r.Note("Redis loads as many keys of the same bytes, and sets for the same indexes, from its RDB file")
	}
	var all []*recovery
	for _, tokens := range []int{30, 50} {
		dir, err := r.tempDir()
		if err != nil {
			return err
		}
		s := &recovery{r, feed.Config{Accounts: r.Scaled(recoverAccounts), Tokens: tokens, Finality: dataFinality}, dir, redis}
		if err := s.prepare(ctx); err != nil {
			return err
		}
		all = append(all, s)
	}
	return turns(r, all, func(s *recovery) error { return s.measure(ctx) })
}

// prepare leaves the ledger on the disk.
func (s *recovery) prepare(ctx context.Context) error {
	path := filepath.Join(s.dir, "ledger.events")
	newest, err := writeLedger(path, s.config, dataBlocks)
	if err != nil {
		return err
	}
	server, err := keep(ctx, s.Run, filepath.Join(s.dir, "ledgerd"), path, newest)
	if err != nil {
		return err
	}
	if err := server.Stop(); err != nil || !s.redis {
		return err
	}
	redis, err := peer.StartRedis(ctx, s.dir)
	if err != nil {
		return err
	}
	err = (&store{Redis: redis, config: s.config}).fill()
	if err == nil {
		_, err = redis.Do("SAVE")
	}
	return errors.Join(err, redis.Stop())
}

// measure starts both once.
func (s *recovery) measure(ctx context.Context) error {
	index := s.config.Accounts / 3
	server, took, err := restart(ctx, s.Run, filepath.Join(s.dir, "ledgerd"), s.config.Account(index, feed.FirstSlot-1))
	if err != nil {
		return err
	}
	if err := errors.Join(s.record("ledgerd", took, server.Pid()), server.Stop()); err != nil || !s.redis {
		return err
	}
	began := time.Now()
	redis, err := peer.StartRedis(ctx, s.dir)
	if err != nil {
		return err
	}
	err = (&store{Redis: redis, config: s.config}).holds(index, feed.FirstSlot-1)
	return errors.Join(err, s.record("redis", time.Since(began), redis.Pid()), redis.Stop())
}

func (s *recovery) record(who string, took time.Duration, pid int) error {
	cpu, err := proc.CPU(pid)
	accounts := float64(s.config.Accounts)
	s.Record(fmt.Sprintf("%s-%d%%-tokens", who, s.config.Tokens), s.config.Accounts,
		report.Figure{Unit: "start-s", Value: took.Seconds()},
		report.Figure{Unit: "accounts/s", Value: accounts / took.Seconds()},
		report.Figure{Unit: "cpu-us/account", Value: cpu.Seconds() * 1e6 / accounts})
	return err
}
