package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomodule/redigo/redis"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/bench/proc"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// store is a redis-server that keeps the accounts of a made-up ledger.
type store struct {
	*peer.Redis
	config feed.Config
	value  []byte
}

// hasRedis reports whether Redis is measured too. Where that is wanted and it is absent, it is left out with a note.
func (r *Run) hasRedis() bool {
	if !r.Peers {
		return false
	}
	_, err := proc.Find("redis-server", "")
	if err != nil {
		r.Note("Redis is left out: %v", err)
	}
	return err == nil
}

// startStore starts a redis-server on a directory.
func startStore(ctx context.Context, r *Run, c feed.Config, dir string, options ...string) *store {
	s := &store{Redis: got(peer.StartRedis(ctx, dir, options...)), config: c}
	r.atEnd(func() error { return s.Stop() })
	return s
}

// appendValue appends what the codec makes of an account without its key, which is what Redis keeps under the key.
func appendValue(dst []byte, w *ledger.AccountWrite, s ledger.Slot) []byte {
	a := ledger.Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch, Executable: w.Executable,
		Known: w.Known &^ ledger.FieldMint, Token: w.Token, Provenance: ledger.BlockProvenance(s),
	}
	begin := len(dst)
	dst = codec.AppendAccount(dst, &a)
	return slices.Delete(dst, begin+1, begin+1+len(a.Pubkey)) // one byte of flags stands in front of the key
}

// send sends a command to Redis within a pipe.
type send = func(command string, words ...any) error

// set sends the command that keeps an account as a slot left it.
func (s *store) set(send send, index int, slot ledger.Slot) error {
	a := s.config.Account(index, slot)
	s.value = appendValue(s.value[:0], &a, slot)
	return send("SET", a.Pubkey[:], s.value)
}

// enlist sends the commands that keep an account in the indexes: accounts of a program, and token accounts of a wallet. It takes
// what costs Redis least: a set where lists are long, and a sorted set, which is packed while it is short, where they are short.
func (s *store) enlist(send send, index int) error {
	a := s.config.Account(index, feed.FirstSlot)
	err := send("SADD", "p"+string(a.Owner[:]), a.Pubkey[:])
	if a.Token != nil && err == nil {
		err = send("ZADD", "w"+string(a.Token.Owner[:]), 0, a.Pubkey[:])
	}
	return err
}

// fill keeps the accounts of base state, and their indexes.
func (s *store) fill() {
	check(s.Pipe(func(send send) (err error) {
		for i := 0; i < s.config.Accounts && err == nil; i++ {
			if err = s.set(send, i, feed.FirstSlot-1); err == nil {
				err = s.enlist(send, i)
			}
		}
		return err
	}))
}

// holds checks that Redis has an account as a slot left it.
func (s *store) holds(index int, slot ledger.Slot) {
	a := s.config.Account(index, slot)
	held := got(redis.String(s.Do("GET", a.Pubkey[:])))
	if want := string(appendValue(nil, &a, slot)); held != want {
		check(fmt.Errorf("account %d is %x in Redis, not %x", index, held, want))
	}
}
