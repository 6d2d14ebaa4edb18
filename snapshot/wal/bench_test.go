package wal

import (
	"path/filepath"
	"testing"
	"time"

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

// plainFile is what the log is measured against: the same bytes, written to a file whose room was
// taken ahead, and synced.
type plainFile struct {
	dir string
	f   vfs.File
	end int64
}

func (p *plainFile) write(b *testing.B, data []byte) time.Duration {
	if p.f == nil || p.end+int64(len(data)) > defaultSegmentBytes {
		if p.f != nil {
			p.f.Close()
			(vfs.Disk{}).Remove(filepath.Join(p.dir, "plain"))
		}
		f, err := vfs.Disk{}.Create(filepath.Join(p.dir, "plain"))
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Preallocate(defaultSegmentBytes); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		p.f, p.end = f, 0
	}
	began := time.Now()
	if _, err := p.f.WriteAt(data, p.end); err != nil {
		b.Fatal(err)
	}
	if err := p.f.Sync(); err != nil {
		b.Fatal(err)
	}
	p.end += int64(len(data))
	return time.Since(began)
}

// benchAgainstDisk commits the records again and again, each time followed by a plain write and
// sync of the same bytes, and reports how long each took.
func benchAgainstDisk(b *testing.B, records []*ledger.Record) {
	dir := b.TempDir()
	l, _ := open(b, Config{FS: vfs.Disk{}, Dir: filepath.Join(dir, "log"), Logger: quiet})
	defer closeLog(b, l)
	plain := &plainFile{dir: dir}
	next := ledger.Version(1)
	var logged, wrote time.Duration
	bytes := 0
	b.ReportAllocs()
	for b.Loop() {
		number(records, &next)
		began := time.Now()
		if err := l.Commit(records); err != nil {
			b.Fatal(err)
		}
		logged += time.Since(began)
		wrote += plain.write(b, l.own.buf)
		bytes += len(l.own.buf)
		if err := l.Prune(next); err != nil {
			b.Fatal(err)
		}
	}
	n := float64(b.N)
	b.ReportMetric(float64(bytes)/1e6/logged.Seconds(), "log-MB/s")
	b.ReportMetric(float64(bytes)/1e6/wrote.Seconds(), "disk-MB/s")
	b.ReportMetric(float64(logged.Microseconds())/n, "log-µs")
	b.ReportMetric(float64(wrote.Microseconds())/n, "disk-µs")
	b.ReportMetric(float64((logged-wrote).Microseconds())/n, "over-µs")
}

// BenchmarkCommitGroup is catching up: many records in one commit.
func BenchmarkCommitGroup(b *testing.B) {
	b.Run("1MiB", func(b *testing.B) { benchAgainstDisk(b, benchCommit(1<<20)) })
	b.Run("8MiB", func(b *testing.B) { benchAgainstDisk(b, benchCommit(8<<20)) })
}

// BenchmarkCommitOne is the tip: one block in one commit.
func BenchmarkCommitOne(b *testing.B) {
	b.Run("16KiB", func(b *testing.B) { benchAgainstDisk(b, benchCommit(16<<10)) })
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
			records := benchCommit(size)
			c := config(nothing{newDisk(b)})
			c.SegmentBytes = 1 << 40
			l, _ := open(b, c)
			next := ledger.Version(1)
			b.ReportAllocs()
			for b.Loop() {
				number(records, &next)
				if err := l.Commit(records); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(l.own.buf)))
			}
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
