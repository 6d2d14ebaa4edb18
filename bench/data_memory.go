package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
	"ledgerd/bench/report"
	"ledgerd/engine/ledger"
)

const (
	memoryAccounts = 3_000_000
	memoryTokens   = 30 // of a hundred accounts
	// memoryWithData is how many accounts with data are held: a third, as they are several times as large.
	memoryWithData = memoryAccounts / 3
)

// runMemory has ledgerd and Redis hold the same accounts, and then start again on what they keep of them.
func runMemory(ctx context.Context, r *Run) {
	c := feed.Config{Accounts: r.Scaled(memoryAccounts), Tokens: memoryTokens, Finality: dataFinality}
	r.Note("an account is %.0f bytes, key and value, without any index; %d of 100 hold tokens; ledgerd has taken a snapshot before its memory is read; "+
		"what a start reads was written just before and comes from the kernel's memory, not from the disk", payloadBytes(c), c.Tokens)
	withData := c
	withData.Accounts, withData.Data = r.Scaled(memoryWithData), ingestData
	r.Note("with-data: %d accounts with %d bytes of data each, which are part of the figure", withData.Accounts, withData.Data)
	subjects := []func(){
		func() { r.heldByLedgerd(ctx, "ledgerd", c, "--data", "none") },
		func() { r.heldByLedgerd(ctx, "with-data", withData, "--data", "all") },
	}
	if r.hasRedis() {
		r.Note("Redis keeps accounts under keys of their own, the accounts of a program in a set, and the token accounts of a wallet in a packed sorted set; " +
			"it starts from its RDB file")
		subjects = append(subjects, func() { r.heldByRedis(ctx, c) })
	}
	inTurns(r, subjects...)
}

// recordHeld records what a process holds that was left alone for a while; took is how long its start took, 0 if it began with nothing.
func (r *Run) recordHeld(ctx context.Context, subject string, pid int, c feed.Config, took time.Duration) {
	n := float64(c.Accounts)
	var figures []report.Figure
	if took > 0 {
		figures = []report.Figure{{Unit: "start-s", Value: took.Seconds()}, {Unit: "accounts/s", Value: n / took.Seconds()},
			{Unit: "cpu-us/account", Value: got(proc.CPU(pid)).Seconds() * 1e6 / n}}
	}
	r.Record(subject, c.Accounts, append(figures, report.Figure{Unit: "B/account", Value: float64(r.settled(ctx, pid)) / n})...)
}

// heldByLedgerd has a ledgerd read the accounts and take a snapshot, and then start from that.
func (r *Run) heldByLedgerd(ctx context.Context, subject string, c feed.Config, flags ...string) {
	dir := r.tempDir()
	path, kept := filepath.Join(dir, "ledger.events"), filepath.Join(dir, "ledgerd")
	newest := writeLedger(path, c, dataBlocks)
	server := r.start(ctx, kept, append(flags, "--source", "file:"+path, "--snapshot-interval", snapshotSoon)...)
	awaitMetrics(ctx, server, 20*time.Millisecond, func(m map[string]float64) bool {
		return m[processedSlot] == float64(newest) && m[finalizedSlot] >= float64(newest-dataFinality) && m["ledgerd_snapshot_slot"] == m[finalizedSlot]
	})
	r.recordHeld(ctx, subject+"-read", server.Pid(), c, 0)
	check(server.Stop())
	began := time.Now()
	server = r.start(ctx, kept, append(flags, "--source", "none")...)
	answers(ctx, server, c.Account(c.Accounts/3, feed.FirstSlot-1))
	r.recordHeld(ctx, subject+"-restarted", server.Pid(), c, time.Since(began))
	holdsAll(server, c, newest)
}

// holdsAll checks that a server has all accounts at the newest slot.
func holdsAll(server *proc.Server, c feed.Config, newest ledger.Slot) {
	tokens := c.Accounts/100*c.Tokens + min(c.Accounts%100, c.Tokens)
	m := got(server.Metrics())
	for name, want := range map[string]int{"ledgerd_accounts": c.Accounts, "ledgerd_token_accounts": tokens, processedSlot: int(newest)} {
		if told := proc.Sum(m, name); told != float64(want) {
			check(fmt.Errorf("ledgerd tells of %.0f %s, not %d", told, name, want))
		}
	}
}

// heldByRedis has a redis-server take the accounts and their indexes, and then load them again.
func (r *Run) heldByRedis(ctx context.Context, c feed.Config) {
	dir := r.tempDir()
	filled := startStore(ctx, r, c, dir)
	filled.fill()
	r.recordHeld(ctx, "redis-filled", filled.Pid(), c, 0)
	got(filled.Do("SAVE")) // a process of its own would not do for the restart
	check(filled.Stop())
	began := time.Now()
	loaded := startStore(ctx, r, c, dir)
	loaded.holds(c.Accounts/3, feed.FirstSlot-1)
	r.recordHeld(ctx, "redis-restarted", loaded.Pid(), c, time.Since(began))
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
