package agave_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"ledgerd/engine/importer"
	"ledgerd/engine/importer/agave"
	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sample is an archive with a bit of everything.
func sample() *agavetest.Archive {
	token := make([]byte, 165)
	token[0], token[32], token[64], token[108] = 7, 8, 9, 1
	return &agavetest.Archive{
		Slot: 1000, Parent: 998, Blockhash: ledger.Hash{4, 5, 6}, Height: 900, Capitalization: 60, VoteAccounts: 3,
		Storages: []agavetest.Storage{
			{Slot: 1000, ID: 12, Records: []agavetest.Record{
				{Pubkey: ledger.Pubkey{1}, Lamports: 10, RentEpoch: 1 << 63, Owner: ledger.Pubkey{9}, Executable: 1, Data: []byte("abc")},
				{Pubkey: ledger.Pubkey{2}, Lamports: 20, Owner: ledger.TokenProgram, Data: token, WriteVersion: 5},
				{Pubkey: ledger.Pubkey{3}, Owner: ledger.Pubkey{9}},
			}, Garbage: []byte(strings.Repeat("garbage!", 100))},
			{Slot: 7, ID: 3, Records: []agavetest.Record{{Pubkey: ledger.Pubkey{3}, Lamports: 30}}},
			{Slot: 8, ID: 4, Garbage: make([]byte, 64)},
		},
	}
}

// told is a record as it was read.
type told struct {
	slot    ledger.Slot
	version uint64
	write   ledger.AccountWrite
}

// open writes an archive into a file of that name and opens it.
func open(t *testing.T, name string, content []byte) *agave.Archive {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	ledgertest.Must(t, os.WriteFile(path, content, 0o644))
	archive, err := agave.Open(path)
	ledgertest.Must(t, err)
	return archive
}

// read reads an archive to its end.
func read(archive *agave.Archive) (bank importer.Point, all []told, err error) {
	bank, err = archive.Read(context.Background(), func(slot ledger.Slot, version uint64, w *ledger.AccountWrite) error {
		all = append(all, told{slot, version, *w})
		return nil
	})
	return bank, all, err
}

// With packing and without; and of a version that wrote less at the end of a manifest.
func TestArchiveTellsBankAndAccounts(t *testing.T) {
	wantBank := importer.Point{
		Slot: 1000, ParentSlot: 998, Blockhash: ledger.Hash{4, 5, 6}, Height: ledger.Some(uint64(900)), Capitalization: ledger.Some(ledger.Lamports(60)),
	}
	want := []told{
		{1000, 0, ledger.AccountWrite{Pubkey: ledger.Pubkey{1}, Lamports: 10, RentEpoch: 1 << 63, Owner: ledger.Pubkey{9}, Executable: true, Known: ledger.FieldsAll}},
		{1000, 5, ledger.AccountWrite{Pubkey: ledger.Pubkey{2}, Lamports: 20, Owner: ledger.TokenProgram, Known: ledger.FieldsAll}},
		{1000, 0, ledger.AccountWrite{Pubkey: ledger.Pubkey{3}}},
		{7, 0, ledger.AccountWrite{Pubkey: ledger.Pubkey{3}, Lamports: 30, Known: ledger.FieldsAll}},
	}
	want[1].write.SetTokenFacts(sample().Storages[0].Records[1].Data)
	old, name := sample(), sample().Name()
	old.Damage = func(f []agavetest.File) { f[3].Content = f[3].Content[:len(f[3].Content)-agavetest.ExtraBytes] }
	for name, content := range map[string][]byte{name: sample().Packed(), strings.TrimSuffix(name, ".zst"): old.Bytes()} {
		if bank, all, err := read(open(t, name, content)); err != nil || bank != wantBank || !reflect.DeepEqual(all, want) {
			t.Errorf("%s: %v, got %+v, %+v\nwant %+v, %+v", name, err, bank, all, wantBank, want)
		}
	}
}

func TestArchiveRefusesWhatDoesNotFit(t *testing.T) {
	files := func(damage func([]agavetest.File)) func(*agavetest.Archive) {
		return func(a *agavetest.Archive) { a.Damage = damage }
	}
	for name, tt := range map[string]struct {
		change func(*agavetest.Archive)
		want   string
	}{
		"other version":        {files(func(f []agavetest.File) { f[0].Content = []byte("1.3.0") }), "version"},
		"no manifest":          {files(func(f []agavetest.File) { clear(f[3:]) }), "no manifest"},
		"manifest last":        {files(func(f []agavetest.File) { slices.Reverse(f[1:]) }), "manifest does not come before"},
		"bank of another slot": {files(func(f []agavetest.File) { f[3].Content = (&agavetest.Archive{Slot: 999}).Manifest() }), "bank at slot 999"},
		"incremental": {files(func(f []agavetest.File) {
			f[3].Content[len(f[3].Content)-agavetest.ExtraBytes+agavetest.IncrementalByte] = 1
		}), "incremental"},
		"blockhash of nowhere":       {files(func(f []agavetest.File) { f[3].Content[8+1]++ }), "blockhash"},
		"storage missing":            {files(func(f []agavetest.File) { f[5].Name = "" }), "accounts/7.3 and 0 more"},
		"storage not listed":         {files(func(f []agavetest.File) { f[5].Name = "accounts/7.4" }), "does not list"},
		"parent after it":            {func(a *agavetest.Archive) { a.Parent = 1000 }, "parent"},
		"height above the slot":      {func(a *agavetest.Archive) { a.Height = 1001 }, "height"},
		"storage of the future":      {func(a *agavetest.Archive) { a.Storages[1].Slot = 1001 }, "after its own"},
		"storage twice":              {func(a *agavetest.Archive) { a.Storages[1] = a.Storages[0] }, "two storages of slot 1000"},
		"another of the same slot":   {func(a *agavetest.Archive) { a.Storages[2].Slot = 7 }, "two storages of slot 7"},
		"used more than there is":    {func(a *agavetest.Archive) { a.Storages[1].Used = 4096 }, "are in use"},
		"used less, inside a head":   {func(a *agavetest.Archive) { a.Storages[0].Used = 200 }, "are in use"},
		"used less, inside data":     {func(a *agavetest.Archive) { a.Storages[0].Used = 137 }, "are in use"},
		"huge data":                  {func(a *agavetest.Archive) { a.Storages[0].Records[0].DataLen = 1 << 40 }, "more than any account"},
		"data to the end of numbers": {func(a *agavetest.Archive) { a.Storages[0].Records[0].DataLen = 1<<64 - 1 }, "more than any account"},
		"data beyond the used part":  {func(a *agavetest.Archive) { a.Storages[0].Records[2].DataLen = 100 }, "are in use"},
		"executable 2":               {func(a *agavetest.Archive) { a.Storages[0].Records[0].Executable = 2 }, "executable"},
	} {
		a := sample()
		tt.change(a)
		_, _, err := read(open(t, a.Name(), a.Packed()))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: err = %v, want one line about %q", name, err, tt.want)
		}
	}
}

func TestArchiveIsRefusedByItsName(t *testing.T) {
	hash, dir := ledger.Hash{1}.String(), t.TempDir()
	ledgertest.Must(t, syscall.Mkfifo(filepath.Join(dir, "snapshot-6-"+hash+".tar"), 0o600))
	for name, want := range map[string]string{
		"snapshot-5-" + hash + ".tar.lz4":               "tar.lz4",
		"snapshot-5-" + hash + ".tar.bz2":               "tar.bz2",
		"snapshot-5-" + hash + ".zip":                   "does not end",
		"incremental-snapshot-4-5-" + hash + ".tar.zst": "no such file",
		"incremental-snapshot-5-5-" + hash + ".tar.zst": "its name",
		"incremental-snapshot-5-" + hash + ".tar.zst":   "its name",
		"snapshot-05-" + hash + ".tar.zst":              "its name",
		"snapshot-5-0OIl.tar.zst":                       "its name",
		"ledger.tar.zst":                                "its name",
		"snapshot-5-" + hash + ".tar.zst":               "no such file",
		"snapshot-6-" + hash + ".tar":                   "not a regular file", // and nobody writes into it
	} {
		if _, err := agave.Open(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%s): %v, want %q", name, err, want)
		}
	}
}

// F27: a cut or flipped archive is never taken for a whole one.
func TestDamagedArchiveIsRefused(t *testing.T) {
	name, whole := sample().Name(), sample().Packed()
	wantBank, want, err := read(open(t, name, whole))
	ledgertest.Must(t, err)
	for n := 0; n < len(whole); n += ledgertest.Sample(1, 3, 11) {
		if _, _, err := read(open(t, name, whole[:n])); err == nil {
			t.Fatalf("cut at byte %d of %d: no error", n, len(whole))
		}
		flipped := bytes.Clone(whole)
		flipped[n] ^= 0x10
		// What refers back to one zero or to another comes to the same.
		if bank, all, err := read(open(t, name, flipped)); err == nil && (bank != wantBank || !reflect.DeepEqual(all, want)) {
			t.Fatalf("bit flipped at byte %d of %d: other content and no error", n, len(whole))
		}
	}
}

// G26: a read that ends early leaves no goroutine behind.
func TestReadEndsWithItsContextAndWithEmit(t *testing.T) {
	defer goleak.VerifyNone(t)
	archive := open(t, sample().Name(), sample().Packed())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := archive.Read(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Read with an ended context: %v", err)
	}
	enough := errors.New("enough")
	if _, err := archive.Read(context.Background(), func(ledger.Slot, uint64, *ledger.AccountWrite) error { return enough }); err != enough {
		t.Errorf("Read whose emit fails: %v", err)
	}
	read, size := archive.Progress()
	ledgertest.Equal(t, read, size, "Progress, which is the size,")
}

// The heap stays under a bound however large the archive is.
func TestReadingTakesBoundedMemory(t *testing.T) {
	a := &agavetest.Archive{Slot: 1 << 20, Height: 1}
	data := make([]byte, 8<<20)
	for i := range uint64(12) { // 96 MiB of data
		big := agavetest.Record{Pubkey: ledger.Pubkey{byte(i)}, Lamports: 1, Owner: ledger.Token2022Program, Data: data}
		a.Storages = append(a.Storages, agavetest.Storage{Slot: i, ID: i, Records: []agavetest.Record{big}})
	}
	archive := open(t, a.Name(), a.Packed())
	a, data = nil, nil
	before, peak := ledgertest.HeapBytes(), uint64(0)
	_, err := archive.Read(context.Background(), func(ledger.Slot, uint64, *ledger.AccountWrite) error {
		peak = max(peak, ledgertest.HeapBytes())
		return nil
	})
	ledgertest.Must(t, err)
	if grown := int64(peak) - int64(before); grown > 48<<20 {
		t.Errorf("reading 96 MiB takes %d MiB of heap", grown>>20)
	}
}
