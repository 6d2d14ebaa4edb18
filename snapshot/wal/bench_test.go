package wal

import (
	"path/filepath"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// benchBlock returns a block record with n account writes, half as many transactions, and the
// updates that the writes made: about 250 bytes for each.
func benchBlock(n int) *ledger.Record {
	b := &ledger.Block{Slot: 250_000_000, ParentSlot: 249_999_999, Blockhash: key("hash", 1), Time: ledger.Some(int64(1_700_000_000))}
	r := &ledger.Record{Kind: ledger.BlockRecord, Slot: b.Slot, Hash: b.Blockhash, Time: b.Time, Block: b}
	for i := range n {
		a := account(i)
		b.Accounts = append(b.Accounts, ledger.AccountWrite{Pubkey: a.Pubkey, Lamports: a.Lamports, Owner: a.Owner, RentEpoch: a.RentEpoch, Known: ledger.FieldsAll})
		r.Updates = append(r.Updates, ledger.Update{Account: a})
		if i%2 == 0 {
			b.AddTransaction(ledger.Transaction{Signature: ledger.Signature{byte(i)}, Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true), Accounts: []ledger.Pubkey{a.Pubkey, a.Owner, key("account", i+1)}})
		}
	}
	return r
}

// benchCommit returns the records of one commit that takes about so many bytes.
func benchCommit(bytes int) []*ledger.Record {
	const perRecord = 64 << 10
	size := func(n int) int { return len(codec.AppendRecord(nil, benchBlock(n))) }
	each := size(1000) - size(0)
	if bytes <= perRecord {
		return []*ledger.Record{benchBlock(1000 * bytes / each)}
	}
	records := make([]*ledger.Record, bytes/perRecord)
	for i := range records {
		records[i] = benchBlock(1000 * perRecord / each)
	}
	return records
}

// number gives the records the versions that come next.
func number(records []*ledger.Record, next *ledger.Version) {
	for _, r := range records {
		r.Version = *next
		*next++
	}
}

// BenchmarkCommit is one block in one commit, and many in one, on the disk.
func BenchmarkCommit(b *testing.B) {
	for name, size := range map[string]int{"16KiB": 16 << 10, "1MiB": 1 << 20, "8MiB": 8 << 20} {
		b.Run(name, func(b *testing.B) {
			benchCommits(b, Config{FS: vfs.Disk{}, Dir: filepath.Join(b.TempDir(), "log"), Logger: quiet}, benchCommit(size))
		})
	}
}

func benchCommits(b *testing.B, c Config, records []*ledger.Record) {
	l, _ := open(b, c)
	defer closeLog(b, l)
	next := ledger.Version(1)
	b.ReportAllocs()
	for b.Loop() {
		number(records, &next)
		if err := l.Commit(records); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(l.own.buf)))
		if err := l.Prune(next); err != nil {
			b.Fatal(err)
		}
	}
}

// nothing is a disk that takes everything at once, so that only the log's own work is left.
type nothing struct{ vfs.FS }

type nothingFile struct{ vfs.File }

func (d nothing) Create(name string) (vfs.File, error) {
	f, err := d.FS.Create(name)
	return nothingFile{f}, err
}

func (nothingFile) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (nothingFile) Sync() error                            { return nil }
func (nothingFile) Preallocate(int64) error                { return nil }
func (nothingFile) Truncate(int64) error                   { return nil }

// BenchmarkFraming is what a commit costs without the disk.
func BenchmarkFraming(b *testing.B) {
	for name, size := range map[string]int{"16KiB": 16 << 10, "1MiB": 1 << 20, "8MiB": 8 << 20} {
		b.Run(name, func(b *testing.B) {
			c := config(nothing{newDisk(b)})
			c.SegmentBytes = 1 << 40
			benchCommits(b, c, benchCommit(size))
		})
	}
}

// BenchmarkReplay reads a log back and decodes it.
func BenchmarkReplay(b *testing.B) {
	c := Config{FS: vfs.Disk{}, Dir: filepath.Join(b.TempDir(), "log"), Logger: quiet, Policy: Policy{Mode: Off}}
	l, _ := open(b, c)
	next := ledger.Version(1)
	one := benchCommit(64 << 10)
	for range 2000 {
		number(one, &next)
		commitAll(b, l, [][]*ledger.Record{one})
	}
	closeLog(b, l)
	bytes := l.Stats().Bytes
	b.SetBytes(bytes)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Replay(b.Context(), c.FS, c.Dir, 0, func([]Entry) error { return nil }, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(2000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(2000*float64(len(one[0].Updates))*float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}
