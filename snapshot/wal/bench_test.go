package wal

import (
	"path/filepath"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// benchCommit returns the records of one commit that takes about so many bytes: blocks of 64 KiB at most.
func benchCommit(bytes int) []*ledger.Record {
	const perRecord = 64 << 10
	each := len(codec.AppendRecord(nil, record(2, 1000))) / 1000
	records := make([]*ledger.Record, max(1, bytes/perRecord))
	for i := range records {
		records[i] = record(2, min(bytes, perRecord)/each)
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

// BenchmarkCommit is one block in one commit, and many in one, on the disk, with and without syncs.
func BenchmarkCommit(b *testing.B) {
	for name, size := range map[string]int{"16KiB": 16 << 10, "1MiB": 1 << 20, "8MiB": 8 << 20} {
		for _, policy := range []Policy{{}, {Mode: Off}} {
			b.Run(name+", "+policy.String(), func(b *testing.B) {
				benchCommits(b, Config{FS: vfs.Disk{}, Dir: filepath.Join(b.TempDir(), "log"), Logger: quiet, Policy: policy}, benchCommit(size))
			})
		}
	}
}

func benchCommits(b *testing.B, c Config, records []*ledger.Record) {
	l, _ := open(b, c)
	defer closeLog(b, l)
	next := ledger.Version(1)
	b.ReportAllocs()
	for b.Loop() {
		number(records, &next)
		must(b, l.Commit(records))
		b.SetBytes(int64(len(l.own.buf)))
		must(b, l.Prune(next))
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
