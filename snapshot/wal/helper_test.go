package wal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

var must = ledgertest.Must

// key returns a key that looks like any other.
func key(what string, n int) [32]byte { return sha256.Sum256(fmt.Appendf(nil, "%s %d", what, n)) }

// account returns an account as an update holds it.
func account(n int) ledger.Account {
	return ledger.Account{
		Pubkey: key("account", n), Owner: key("owner", n%3), Lamports: ledger.Lamports(1000 + n),
		RentEpoch: 1<<64 - 1, Known: ledger.FieldsShown, Provenance: ledger.Provenance(n),
	}
}

// record returns record v of a log that has all kinds; size scales what it holds.
func record(v ledger.Version, size int) *ledger.Record {
	n := int(v)
	slot := ledger.Slot(100 + v)
	r := &ledger.Record{Version: v, Slot: slot, Hash: key("hash", n), FirstSeq: ledger.Seq(10 * v), StateHash: ledger.StateHash{uint64(n), 2, 3, 4}}
	switch n % 5 {
	case 1:
		r.Kind = ledger.BaseRecord
		r.Base = &ledger.BaseState{Slot: slot}
		for i := range size {
			r.Base.Accounts = append(r.Base.Accounts, ledger.AccountWrite{Pubkey: key("base", n+i), Lamports: 7, Known: ledger.FieldOwner, Owner: key("owner", i)})
		}
	case 4:
		r.Kind, r.Status, r.Slot = ledger.StatusRecord, ledger.StatusFinalized, slot-2
	case 0:
		r.Kind, r.FromSlot, r.Slot = ledger.RollbackRecord, slot, slot-1
		r.Unchanged = []ledger.Account{account(n)}
	default:
		r.Kind = ledger.BlockRecord
		b := &ledger.Block{Slot: slot, ParentSlot: slot - 1, Blockhash: r.Hash, Time: ledger.Some(int64(1700000000 + n))}
		for i := range size {
			b.AddTransaction(ledger.Transaction{Fee: ledger.Some(ledger.Lamports(5000)), Accounts: []ledger.Pubkey{key("account", i)}})
			b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: key("account", n+i), Lamports: ledger.Lamports(n)})
		}
		r.Block, r.Time = b, b.Time
	}
	for i := range size {
		r.Updates = append(r.Updates, ledger.Update{Account: account(n + i)})
	}
	return r
}

// commitOf returns the records of one commit: n of them from version v on.
func commitOf(v ledger.Version, n, size int) []*ledger.Record {
	records := make([]*ledger.Record, n)
	for i := range records {
		records[i] = record(v+ledger.Version(i), size)
	}
	return records
}

// script returns commits, one to three records each, whose records have versions from 1 on.
func script(commits, size int) [][]*ledger.Record {
	var all [][]*ledger.Record
	v := ledger.Version(1)
	for i := range commits {
		c := commitOf(v, 1+i%3, size)
		v += ledger.Version(len(c))
		all = append(all, c)
	}
	return all
}

// quiet is for logs whose warnings are not looked at.
var quiet = slog.New(slog.DiscardHandler)

const testDir = "data/log"

func config(disk vfs.FS) Config {
	return Config{FS: disk, Dir: testDir, SegmentBytes: 8 << 10, Logger: quiet}
}

// replayAll returns the commits that the log holds from a version on.
func replayAll(disk vfs.FS, dir string, from ledger.Version) ([][]*ledger.Record, End, error) {
	var got [][]*ledger.Record
	end, err := replay(context.Background(), &Config{FS: disk, Dir: dir}, from, collect(&got))
	return got, end, err
}

// collect returns a visit that appends the records of each commit.
func collect(to *[][]*ledger.Record) func([]Entry) error {
	return func(entries []Entry) error {
		c := make([]*ledger.Record, len(entries))
		for i := range entries {
			c[i] = entries[i].Record
		}
		*to = append(*to, c)
		return nil
	}
}

// segmentsOf returns the segments of a log that should be healthy, oldest first.
func segmentsOf(t testing.TB, disk vfs.FS) []segment {
	t.Helper()
	s, err := surveyLog(disk, testDir, nil)
	must(t, err)
	must(t, s.damage)
	return s.segments
}

// open opens a log that should be healthy, and begins its next segment.
func open(t testing.TB, c Config) (*Log, [][]*ledger.Record) {
	t.Helper()
	l, got := openUnsettled(t, c)
	must(t, l.begin())
	return l, got
}

// openUnsettled opens a log that should be healthy, and writes nothing.
func openUnsettled(t testing.TB, c Config) (l *Log, got [][]*ledger.Record) {
	t.Helper()
	l, err := Open(t.Context(), c, 0, collect(&got))
	must(t, err)
	return l, got
}

// reach returns the states after the newest commit and after the newest that is durable.
func reach(l *Log) (newest, durable state) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state, l.durable
}

// checkStats holds what a log tells about itself against what it holds.
func checkStats(t testing.TB, l *Log) {
	t.Helper()
	got := l.Stats()
	l.mu.Lock()
	defer l.mu.Unlock()
	want := Stats{Segments: len(l.segments), Torn: l.found.torn, Position: l.state.position, DurableSlot: l.durable.slot}
	for _, g := range l.segments {
		want.Bytes += g.size
	}
	ledgertest.Equal(t, got, want, "Stats()")
}

// commitAll commits what should be committed without trouble.
func commitAll(t testing.TB, l *Log, commits [][]*ledger.Record) {
	t.Helper()
	for _, c := range commits {
		ledgertest.Mustf(t, l.Commit(c), "Commit of record %d", c[0].Version)
	}
}

// same tells whether the commits are equal. Equal records have equal encodings, and comparing those
// takes a tenth of the time.
func same(a, b [][]*ledger.Record) bool {
	var x, y []byte
	return slices.EqualFunc(a, b, func(a, b []*ledger.Record) bool {
		return slices.EqualFunc(a, b, func(a, b *ledger.Record) bool {
			x, y = codec.AppendRecord(x[:0], a), codec.AppendRecord(y[:0], b)
			return bytes.Equal(x, y)
		})
	})
}

// wantCommits fails unless got is want.
func wantCommits(t testing.TB, what string, got, want [][]*ledger.Record) {
	t.Helper()
	ledgertest.MustHold(t, same(got, want), "%s: got %d commits, want %d, or their records differ", what, len(got), len(want))
}

// wantLog fails unless a healthy log holds just these commits, and returns its end.
func wantLog(t testing.TB, what string, disk vfs.FS, want [][]*ledger.Record) End {
	t.Helper()
	got, end, err := replayAll(disk, testDir, 0)
	ledgertest.Mustf(t, err, "%s", what)
	wantCommits(t, what, got, want)
	return end
}

// isPrefix tells whether got is the beginning of want.
func isPrefix(got, want [][]*ledger.Record) bool {
	return len(got) <= len(want) && same(got, want[:len(got)])
}

// logger returns a logger that writes a line for each warning.
func logger(to *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
