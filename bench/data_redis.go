package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ledgerd/bench/feed"
	"ledgerd/bench/peer"
	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// redisBatch is how many commands go into a pipeline at once.
const redisBatch = 1000

// startRedis starts a redis-server for a row of its own. It returns nil, and notes why, if
// nobody asked for peers or the program is absent.
func startRedis(ctx context.Context, env *Env, result *Result, dir string, options ...string) (*peer.Redis, error) {
	if !env.Peers {
		return nil, nil
	}
	s, err := peer.StartRedis(ctx, dir, options...)
	if absent := (*peer.AbsentError)(nil); errors.As(err, &absent) {
		note := fmt.Sprintf("redis was left out: %v", absent)
		if !slices.Contains(result.Notes, note) {
			env.Say("%s", note)
			result.Notes = append(result.Notes, note)
		}
		return nil, nil
	}
	if err == nil {
		result.version("redis", s.Version())
	}
	return s, err
}

// appendValue appends what the codec makes of an account without its key: what redis is to
// keep under it.
func appendValue(dst []byte, w *ledger.AccountWrite, s ledger.Slot) []byte {
	a := ledger.Account{
		Pubkey: w.Pubkey, Owner: w.Owner, Lamports: w.Lamports, RentEpoch: w.RentEpoch, Executable: w.Executable,
		Known: w.Known &^ ledger.FieldMint, Token: w.Token, Provenance: ledger.BlockProvenance(s),
	}
	begin := len(dst)
	dst = codec.AppendAccount(dst, &a)
	// One byte of flags stands in front of the key.
	return slices.Delete(dst, begin+1, begin+1+len(a.Pubkey))
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

// setter appends commands that keep accounts.
type setter struct {
	config feed.Config
	value  []byte
}

// set appends the command that keeps an account as a slot left it.
func (s *setter) set(dst []byte, index int, slot ledger.Slot) []byte {
	a := s.config.Account(index, slot)
	s.value = appendValue(s.value[:0], &a, slot)
	dst = peer.AppendWord(peer.AppendHeader(dst, 3), "SET")
	return peer.AppendWord(peer.AppendWord(dst, a.Pubkey[:]), s.value)
}

// enlist appends the commands that keep an account in the indexes: accounts of a program, and
// token accounts of a wallet. It takes what costs redis least: a set where lists are long, and a
// sorted set, which is packed while it is short, where they are short.
func (s *setter) enlist(dst []byte, index int) (commands []byte, count int) {
	a := s.config.Account(index, feed.FirstSlot)
	dst = peer.AppendWord(peer.AppendHeader(dst, 3), "SADD")
	dst = peer.AppendWord(peer.AppendWord(dst, "p"+string(a.Owner[:])), a.Pubkey[:])
	if a.Token == nil {
		return dst, 1
	}
	dst = peer.AppendWord(peer.AppendHeader(dst, 4), "ZADD")
	dst = peer.AppendWord(peer.AppendWord(dst, "w"+string(a.Token.Owner[:])), "0")
	return peer.AppendWord(dst, a.Pubkey[:]), 2
}

// fill keeps the accounts of base state, in the indexes too if wanted.
func (s *setter) fill(r *peer.Redis, indexes bool) error {
	next := 0
	err := r.Pipe(func(dst []byte) ([]byte, int) {
		count := 0
		for ; next < s.config.Accounts && count < redisBatch; next++ {
			dst = s.set(dst, next, feed.FirstSlot-1)
			count++
			if indexes {
				var more int
				dst, more = s.enlist(dst, next)
				count += more
			}
		}
		return dst, count
	})
	if err != nil {
		return fmt.Errorf("cannot fill redis: %w", err)
	}
	return nil
}

// holds checks that redis has an account as a slot left it.
func (s *setter) holds(r *peer.Redis, index int, slot ledger.Slot) error {
	a := s.config.Account(index, slot)
	got, err := r.Do("GET", string(a.Pubkey[:]))
	if err != nil {
		return err
	}
	if want := string(appendValue(nil, &a, slot)); got != want {
		return fmt.Errorf("redis holds %x under account %d, not %x", got, index, want)
	}
	return nil
}
