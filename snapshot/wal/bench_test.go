package wal

import (
	"path/filepath"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// benchLog opens a log on the disk. commit appends a commit of about so many bytes, in blocks of 64 KiB at most.
func benchLog(b *testing.B, policy Policy, bytes int) (c Config, l *Log, commit func()) {
	const perRecord = 64 << 10
	c = Config{FS: vfs.Disk{}, Dir: filepath.Join(b.TempDir(), "log"), Logger: quiet, Policy: policy}
	l, _ = open(b, c)
	each := len(codec.AppendRecord(nil, record(2, 1000))) / 1000
	records := make([]*ledger.Record, max(1, bytes/perRecord))
	for i := range records {
		records[i] = record(2, min(bytes, perRecord)/each)
	}
	next := ledger.Version(1)
	b.ReportAllocs()
	return c, l, func() {
		for _, r := range records {
			r.Version = next
			next++
		}
		must(b, l.Commit(records))
	}
}

// BenchmarkCommit is one block in one commit, and many in one, on the disk, with and without syncs.
func BenchmarkCommit(b *testing.B) {
	for name, size := range map[string]int{"16KiB": 16 << 10, "1MiB": 1 << 20, "8MiB": 8 << 20} {
		for _, policy := range []Policy{{}, {Mode: Off}} {
			b.Run(name+", "+policy.String(), func(b *testing.B) {
				_, l, commit := benchLog(b, policy, size)
				for b.Loop() {
					commit()
					b.SetBytes(int64(len(l.own.buf)))
					must(b, l.Prune(l.state.version))
				}
				must(b, l.Close())
			})
		}
	}
}

// BenchmarkReplay reads a log back and decodes it.
func BenchmarkReplay(b *testing.B) {
	const commits = 2000
	c, l, commit := benchLog(b, Policy{Mode: Off}, 64<<10)
	for range commits {
		commit()
	}
	must(b, l.Close())
	b.SetBytes(l.Stats().Bytes)
	for b.Loop() {
		_, err := Replay(b.Context(), c.FS, c.Dir, 0, func([]Entry) error { return nil }, nil)
		must(b, err)
	}
	b.ReportMetric(commits*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
