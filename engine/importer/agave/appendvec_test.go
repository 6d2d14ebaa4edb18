package agave

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"ledgerd/engine/importer/agave/agavetest"
	"ledgerd/engine/ledger"
)

// readAll reads the records of a storage.
func readAll(b []byte, used uint64) (all []ledger.AccountWrite, err error) {
	held, _ := ledger.ParseDataPrograms("all")
	err = (&vecReader{held: held}).read(bytes.NewReader(b), used, func(w *ledger.AccountWrite, _ uint64) error {
		all = append(all, *w)
		return nil
	})
	return all, err
}

// FuzzStorage: whatever a storage holds, it is read or refused, and nothing is read past what is in use.
func FuzzStorage(f *testing.F) {
	s := agavetest.Storage{Records: []agavetest.Record{
		{Pubkey: ledger.Pubkey{1}, Lamports: 1, Data: []byte("four")},
		{Pubkey: ledger.Pubkey{2}, Lamports: 2, Owner: ledger.TokenProgram, Data: make([]byte, 82)},
		{Pubkey: ledger.Pubkey{2}},
	}}
	whole := s.Bytes()
	f.Add(whole, uint64(len(whole)))
	f.Add(whole, uint64(136))
	f.Add(whole[:200], uint64(300))
	f.Fuzz(func(t *testing.T, b []byte, used uint64) {
		all, err := readAll(b, used)
		read := uint64(0)
		for _, w := range all {
			read += recordHeadBytes + uint64(len(w.Data.Bytes()))
		}
		if read > min(used, uint64(len(b))) || err == nil && used > uint64(len(b)) {
			t.Fatalf("of %d bytes, %d in use: %d were read, err = %v", len(b), used, read, err)
		}
	})
}

var twoStorages = agavetest.Archive{
	Slot: 9, Parent: 8, Height: 5, VoteAccounts: 2, Storages: []agavetest.Storage{{Slot: 5, ID: 1}, {Slot: 9, ID: 2, Used: 136}},
}

// FuzzManifest: whatever a manifest says, it is read or refused, in memory that its size bounds.
func FuzzManifest(f *testing.F) {
	whole := twoStorages.Manifest()
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readManifest(bytes.NewReader(b), int64(len(b)), 9, ledger.Opt[ledger.Slot]{})
		if err == nil && (m.bank.Slot != 9 || len(m.storages) > len(b)/16) {
			t.Fatalf("%d bytes give %+v with %d storages", len(b), m.bank, len(m.storages))
		}
	})
}

// Every cut of a manifest in front of its last optional fields is an error, and so is every count
// that is larger than what follows.
func TestManifestIsReadToItsEnd(t *testing.T) {
	whole := twoStorages.Manifest()
	whole = whole[:len(whole)-agavetest.ExtraBytes]
	for n := range whole {
		if _, err := readManifest(bytes.NewReader(whole[:n]), int64(n), 9, ledger.Opt[ledger.Slot]{}); err == nil {
			t.Fatalf("cut at byte %d of %d: no error", n, len(whole))
		}
		if _, err := readManifest(bytes.NewReader(whole[:n]), int64(len(whole)), 9, ledger.Opt[ledger.Slot]{}); !errors.Is(err, errCut) {
			t.Fatalf("the archive ends at byte %d of %d: %v", n, len(whole), err)
		}
	}
	b := &bincode{r: bufio.NewReader(bytes.NewReader(bytes.Repeat([]byte{0xff}, 64))), size: 64}
	if n := b.count(1); n != 0 || b.err == nil || !strings.Contains(b.err.Error(), "are left") {
		t.Errorf("count = %d, %v", n, b.err)
	}
}

// Token facts are those of the whole data, however large it is.
func TestLargeTokenDataIsReadWhole(t *testing.T) {
	data := make([]byte, maxDataBytes)
	data[45], data[165] = 1, 1 // an initialized mint, extended
	extension := func(at, kind, size int) int {
		binary.LittleEndian.PutUint16(data[at:], uint16(kind))
		binary.LittleEndian.PutUint16(data[at+2:], uint16(size))
		return at + 4 + size
	}
	at := 166
	for at+60000 < len(data)-10000 {
		at = extension(at, 19, 60000)
	}
	extension(at, 25, 0)
	s := agavetest.Storage{Records: []agavetest.Record{
		{Pubkey: ledger.Pubkey{1}, Lamports: 1, Owner: ledger.Token2022Program, Data: data},
		{Pubkey: ledger.Pubkey{2}, Lamports: 1},
	}}
	if got, err := readAll(s.Bytes(), uint64(len(s.Bytes()))); err != nil || len(got) != 2 || got[0].Mint == nil || !got[0].Mint.Scaled.Value {
		t.Errorf("%v, %+v", err, got)
	}
}
