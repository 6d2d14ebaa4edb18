package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ledgerd/engine/datadir"
	"ledgerd/engine/importer"
	"ledgerd/engine/importer/agave"
	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

// BenchmarkImport imports an archive of 400,000 records, half of them token accounts, of 300,000 accounts:
// from the file to a directory that a node starts from.
func BenchmarkImport(b *testing.B) {
	a := &agavetest.Archive{Slot: 1000, Parent: 999}
	held := agavetest.TokenData(&ledger.TokenAccount{Amount: 5, Details: ledger.Some(ledger.TokenDetails{State: ledger.TokenInitialized})})
	const accounts, records = 300_000, 400_000
	for slot := range uint64(40) {
		s := agavetest.Storage{Slot: slot, ID: slot}
		for n := range records / 40 {
			key := ledgertest.Key((int(slot)*(records/40) + n) % accounts)
			record := agavetest.Record{Pubkey: key, Lamports: 1, Owner: ledger.TokenProgram, Data: held}
			if n%2 == 0 {
				record.Owner, record.Data = ledger.SystemProgram, nil
			}
			s.Records = append(s.Records, record)
		}
		a.Storages = append(a.Storages, s)
	}
	a.Capitalization = accounts
	path, err := a.Write(b.TempDir())
	must(b, err)
	unpacked := int64(len(a.Bytes()))
	packed, err := os.Stat(path)
	must(b, err)
	b.SetBytes(unpacked)
	var reading time.Duration
	for b.Loop() {
		dir, _, err := datadir.OpenForImport(vfs.Disk{}, filepath.Join(b.TempDir(), "data"))
		must(b, err)
		into, err := importer.New(importer.Config{Dir: dir, Logger: quietLog()})
		must(b, err)
		archive, err := agave.Open(path)
		must(b, err)
		begun := time.Now()
		_, err = archive.Read(b.Context(), into.Add)
		must(b, err)
		reading += time.Since(begun)
		done, err := into.Finish(b.Context(), importer.Point{Slot: 1000, Capitalization: ledger.Some(ledger.Lamports(accounts))})
		if err != nil || done.Accounts != accounts {
			b.Fatal(done, err)
		}
		dir.Close()
	}
	b.ReportMetric(float64(b.N)*records/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(b.N)*records/reading.Seconds(), "records/s-read")
	b.ReportMetric(float64(packed.Size())/1e6, "packed-MB")
}
