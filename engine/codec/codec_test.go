package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

// TestAccountsComeBackOneAfterTheOther decodes accounts and a mint with one decoder: none keeps anything of the one before.
func TestAccountsComeBackOneAfterTheOther(t *testing.T) {
	var decoder AccountDecoder
	var rest []byte
	events, records := goldenValues()
	full, closed, mint := records[1].Updates[0].Account, records[1].Updates[1].Account, &events[0].(*ledger.Block).Mints[0].Mint
	accounts := []ledger.Account{full, closed, full, {Pubkey: full.Pubkey, Lamports: 1, Known: ledger.FieldOwner}, closed}
	for i := range accounts {
		rest = AppendAccount(rest, &accounts[i])
	}
	rest = AppendMint(rest, mint)
	for i := range accounts {
		got, after, err := decoder.Decode(rest)
		if err != nil || !reflect.DeepEqual(got, &accounts[i]) || got != &decoder.account {
			t.Fatalf("account %d: got %+v, %v, want %+v in the decoder's own", i, got, err, accounts[i])
		}
		_, _, err = decoder.Decode(rest[:len(rest)-len(after)-1])
		ledgertest.ErrorIs(t, err, ledger.ErrCorrupt, "a part of an account")
		rest = after
	}
	if got, rest, err := DecodeMint(rest); err != nil || got != *mint || len(rest) != 0 {
		t.Fatalf("DecodeMint: got %+v, %v, %d bytes left, want %+v", got, err, len(rest), mint)
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenValues are one of each kind in format version 1, with every optional part once there and once not.
func goldenValues() (events []ledger.Event, records []*ledger.Record) {
	key := func(b byte) (k ledger.Pubkey) {
		for i := range k {
			k[i] = b
		}
		return k
	}
	full := &ledger.Block{
		Slot: 300, ParentSlot: 298, Blockhash: ledger.Hash(key(1)), PreviousBlockhash: ledger.Some(ledger.Hash(key(2))),
		Time: ledger.Some(int64(-1)), Height: ledger.Some(uint64(200)), Status: ledger.Finalized, TransactionCount: 3,
	}
	full.AddTransaction(ledger.Transaction{
		Signature: ledger.Signature{3}, Fee: ledger.Some(ledger.Lamports(5000)), Success: ledger.Some(true), Accounts: []ledger.Pubkey{key(4), key(5)},
	})
	full.AddTransaction(ledger.Transaction{Signature: ledger.Signature{6}, Success: ledger.Some(false)})
	full.AddTransaction(ledger.Transaction{Signature: ledger.Signature{7}})
	details := ledger.TokenDetails{
		State: ledger.TokenFrozen, Delegate: ledger.Some(key(8)), DelegatedAmount: 127, CloseAuthority: ledger.Some(key(9)),
	}
	token := &ledger.TokenAccount{Mint: key(10), Owner: key(11), Amount: math.MaxUint64, Details: ledger.Some(details)}
	full.Accounts = []ledger.AccountWrite{
		{Pubkey: key(12), Lamports: 128, Owner: ledger.TokenProgram, RentEpoch: math.MaxUint64, Executable: true, Known: ledger.FieldsAll, Token: token},
		{Pubkey: key(13), Known: ledger.FieldsAll, Mint: &ledger.Mint{Decimals: 6, Supply: ledger.Some(uint64(0)), Scaled: ledger.Some(true)}},
		{Pubkey: key(14), Known: ledger.FieldToken, Token: &ledger.TokenAccount{Mint: key(10)}, TokenOwnerUnknown: true},
		{Pubkey: key(15), Lamports: 1},
	}
	full.Mints = []ledger.MintWrite{{Pubkey: key(10), Mint: ledger.Mint{Decimals: 9, Scaled: ledger.Some(false), Provenance: ledger.BlockProvenance(300), ScaledProvenance: ledger.BlockProvenance(300)}}}
	base := &ledger.BaseState{Slot: 299, Accounts: full.Accounts[:1], Mints: full.Mints}
	events = []ledger.Event{
		full, &ledger.Block{}, base, &ledger.BaseState{},
		&ledger.SlotStatus{Slot: 300, Status: ledger.StatusConfirmed, Blockhash: ledger.Some(ledger.Hash(key(1)))},
		&ledger.SlotStatus{Slot: math.MaxUint64, Status: ledger.StatusDead},
	}
	accounts := []ledger.Account{
		{Pubkey: key(12), Owner: ledger.TokenProgram, Lamports: 128, RentEpoch: 1, Executable: true,
			Known: ledger.FieldsShown | ledger.FieldToken, Token: token, Provenance: ledger.BlockProvenance(300),
			FieldProvenance: &ledger.FieldProvenance{ledger.BaseProvenance(299), ledger.BlockProvenance(1), ledger.BaseProvenance(0), ledger.BlockProvenance(300)}},
		{Pubkey: key(13), Provenance: ledger.BlockProvenance(300)},
	}
	updates := []ledger.Update{{Account: accounts[0], OwnerBefore: ledger.Some(ledger.SystemProgram)}, {Account: accounts[1]}}
	state := ledger.StateHash{1, 2, 3, math.MaxUint64}
	records = []*ledger.Record{
		{Version: 1, Kind: ledger.BaseRecord, Slot: 299, Base: base, FirstSeq: 1},
		{Version: 2, Kind: ledger.BlockRecord, Slot: 300, Hash: ledger.Hash(key(1)), Time: full.Time, Block: full,
			FirstSeq: 1, Updates: updates, StateHash: state},
		{Version: 3, Kind: ledger.RollbackRecord, Slot: 298, Hash: ledger.Hash(key(2)), FromSlot: 300,
			FirstSeq: 3, Updates: updates[1:], Unchanged: accounts[:1], StateHash: state},
		{Version: 4, Kind: ledger.StatusRecord, Slot: 298, Hash: ledger.Hash(key(2)), Status: ledger.StatusFinalized, FirstSeq: 4},
	}
	return events, records
}

// goldenWallets are records of format version 2.
func goldenWallets() []*ledger.Record {
	_, records := goldenValues()
	updates := slices.Clone(records[1].Updates)
	updates[0].WalletBefore, updates[1].WalletBefore = ledger.Some(ledger.Pubkey{1}), ledger.Some(ledger.Pubkey{2})
	return []*ledger.Record{
		{Version: 5, Kind: ledger.BlockRecord, Slot: 301, Hash: ledger.Hash{3}, Block: &ledger.Block{Slot: 301}, FirstSeq: 4, Updates: updates},
		{Version: 6, Kind: ledger.RollbackRecord, Slot: 298, Hash: ledger.Hash{2}, FromSlot: 301, FirstSeq: 6,
			Updates: []ledger.Update{records[1].Updates[0], updates[1]}},
	}
}

// goldenHorizons are records of format version 4.
func goldenHorizons() []*ledger.Record {
	_, records := goldenValues()
	for _, r := range records[:3] {
		r.Horizon = ledger.Some(ledger.Slot(290))
	}
	written := records[1].Block.Accounts[0].AsWritten(ledger.BlockProvenance(300), ledger.BaseProvenance(7))
	records[1].Updates = []ledger.Update{{Account: written, OwnerBefore: ledger.Some(ledger.SystemProgram), Written: 1}, records[1].Updates[1]}
	records = records[:3]
	for _, e := range goldenLevels() {
		records = append(records, &ledger.Record{Version: 8, Kind: ledger.BaseRecord, Slot: 299, Base: e.(*ledger.BaseState), FirstSeq: 8})
	}
	return records
}

// goldenLevels are base states that say their level.
func goldenLevels() []ledger.Event {
	events, _ := goldenValues()
	accounts := events[2].(*ledger.BaseState).Accounts
	return []ledger.Event{
		&ledger.BaseState{Slot: 299, Level: ledger.Some(ledger.Processed), Accounts: accounts},
		&ledger.BaseState{Slot: 299, Level: ledger.Some(ledger.Confirmed)},
	}
}

// goldenErrs are an event of format version 2 and a record of version 5.
func goldenErrs() ([]ledger.Event, []*ledger.Record) {
	events, records := goldenValues()
	events[0].(*ledger.Block).Transactions[1].Err = `{"InstructionError":[0,{"Custom":1}]}`
	return events[:1], records[1:2]
}

// goldenData are events of format version 3 and records of version 6.
func goldenData() ([]ledger.Event, []*ledger.Record) {
	events, _ := goldenValues()
	records := goldenHorizons()
	tell := func(known *ledger.Fields, data *ledger.Data, bytes ...byte) {
		*known |= ledger.FieldData
		*data = ledger.NewData(bytes)
	}
	base := events[2].(*ledger.BaseState)
	base.Accounts = slices.Clone(base.Accounts) // else the block's are the same
	tell(&base.Accounts[0].Known, &base.Accounts[0].Data)
	for _, b := range []*ledger.Block{events[0].(*ledger.Block), records[1].Block} {
		tell(&b.Accounts[0].Known, &b.Accounts[0].Data, 1, 2, 3)
		tell(&b.Accounts[1].Known, &b.Accounts[1].Data)
	}
	block, rollback := records[1], records[2]
	block.Updates[0].Account = block.Block.Accounts[0].AsWritten(ledger.BlockProvenance(300), ledger.BaseProvenance(7))
	for _, a := range []*ledger.Account{&rollback.Updates[0].Account, &rollback.Unchanged[0]} {
		tell(&a.Known, &a.Data, bytes.Repeat([]byte{9}, 130)...)
	}
	unchanged := &ledger.Record{Version: 9, Kind: ledger.RollbackRecord, Slot: 298, FromSlot: 300, FirstSeq: 3, Unchanged: rollback.Unchanged}
	return []ledger.Event{events[0], base}, []*ledger.Record{block, rollback, unchanged}
}

// goldenDataBefore are records of version 6 whose updates tell what the data was: of each length, and of an account whose data is not known any more.
func goldenDataBefore() []*ledger.Record {
	_, records := goldenData()
	block := records[0]
	after := block.Block.Accounts[0].AsWritten(ledger.BlockProvenance(300), ledger.BaseProvenance(7))
	block.Updates = []ledger.Update{{Account: after, Written: 1, DataBefore: ledger.Some(ledger.NewData([]byte{1, 9, 9, 3}))}}
	rollback := records[1]
	unknown := rollback.Updates[0]
	unknown.Account.Known, unknown.Account.Data, unknown.DataBefore = unknown.Account.Known&^ledger.FieldData, ledger.Data{}, ledger.Some(ledger.NewData([]byte{5, 6}))
	empty := unknown
	empty.DataBefore = ledger.Some(ledger.Data{})
	rollback.Updates = []ledger.Update{unknown, empty}
	for _, before := range [][]byte{nil, {1}, {3}, {1, 3}, {1, 2, 2, 3}, {9, 2, 9}, {1, 2, 3, 1, 2, 3}, {7, 7}} {
		rollback.Updates = append(rollback.Updates, ledger.Update{Account: after, DataBefore: ledger.Some(ledger.NewData(before))})
	}
	return []*ledger.Record{block, rollback}
}

// goldenReads are events of format version 4 and records of version 7: with data beside what is only read, and without.
func goldenReads() ([]ledger.Event, []*ledger.Record) {
	events, records := goldenData()
	for _, w := range []*ledger.AccountWrite{&events[0].(*ledger.Block).Accounts[3], &records[0].Block.Accounts[3]} {
		w.ReadOnly = true
	}
	base := []ledger.AccountWrite{{Pubkey: ledger.Pubkey{1}, Lamports: 1, ReadOnly: true}}
	return []ledger.Event{events[0], &ledger.BaseState{Accounts: base}},
		[]*ledger.Record{records[0], {Kind: ledger.BlockRecord, Block: &ledger.Block{Accounts: base}}}
}

// F51: TestEncodingIsTheOneOfItsVersion compares with golden files: log, snapshots and files written by an
// older program must stay readable.
func TestEncodingIsTheOneOfItsVersion(t *testing.T) {
	events, records := goldenValues()
	checkGolden(t, "codec.golden", events, records)
	checkGolden(t, "codec2.golden", nil, goldenWallets())
	checkGolden(t, "codec3.golden", nil, []*ledger.Record{
		{Version: 7, Kind: ledger.StatusRecord, Slot: 301, Hash: ledger.Hash{3}, Status: ledger.StatusFinalized, ByDepth: true, FirstSeq: 8},
	})
	checkGolden(t, "codec4.golden", goldenLevels(), goldenHorizons())
	errEvents, errRecords := goldenErrs()
	checkGolden(t, "codec5.golden", errEvents, errRecords)
	dataEvents, dataRecords := goldenData()
	checkGolden(t, "codec6.golden", dataEvents, dataRecords)
	checkGolden(t, "codec6before.golden", nil, goldenDataBefore())
	readEvents, readRecords := goldenReads()
	checkGolden(t, "codec7.golden", readEvents, readRecords)
}

// checkGolden compares the encodings of values with a golden file, and what these are read as with the values.
func checkGolden(t *testing.T, name string, events []ledger.Event, records []*ledger.Record) {
	t.Helper()
	var text strings.Builder
	note := func(want any, encoded []byte, got any, err error) {
		t.Helper()
		fmt.Fprintf(&text, "%T %x\n", want, encoded)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %x is read as %+v, %v, want %+v", name, encoded, got, err, want)
		}
	}
	for _, e := range events {
		encoded := AppendEvent(nil, e)
		got, err := DecodeEvent(encoded)
		note(e, encoded, got, err)
	}
	for _, r := range records {
		encoded := AppendRecord(nil, r)
		got, err := DecodeRecord(encoded)
		note(r, encoded, got, err)
	}
	golden := filepath.Join("testdata", name)
	if *update {
		ledgertest.Must(t, os.WriteFile(golden, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	ledgertest.Must(t, err)
	ledgertest.Equal(t, text.String(), string(want), "%s: the encodings (-update rewrites them)", name)
}

// F4, F51: TestEachValueHasOneEncoding changes every byte of encodings: what is read is written as the same bytes, all else is refused.
func TestEachValueHasOneEncoding(t *testing.T) {
	events, records := goldenValues()
	apart := ledger.Mint{Supply: ledger.Some(uint64(1)), Scaled: ledger.Some(true), Provenance: 2, SupplyProvenance: 1, ScaledProvenance: 2}
	errEvents, errRecords := goldenErrs()
	dataEvents, dataRecords := goldenData()
	readEvents, readRecords := goldenReads()
	for _, e := range append(slices.Concat(events, goldenLevels(), errEvents, dataEvents, readEvents), &ledger.BaseState{Mints: []ledger.MintWrite{{Mint: apart}}}) {
		changeEveryByte(t, AppendEvent(nil, e), AppendEvent, DecodeEvent)
	}
	byDepth := &ledger.Record{Kind: ledger.StatusRecord, Status: ledger.StatusFinalized, ByDepth: true}
	for _, r := range slices.Concat(records, goldenWallets(), goldenHorizons(), errRecords, dataRecords, goldenDataBefore(), readRecords, []*ledger.Record{byDepth}) {
		changeEveryByte(t, AppendRecord(nil, r), AppendRecord, DecodeRecord)
	}
	_, err := DecodeRecord([]byte{8})
	ledgertest.ErrorSays(t, err, "format version 8, this program reads up to 7", "a record of a newer program")
}

// changeEveryByte puts other values, and numbers that are too long or without end, in place of each byte.
func changeEveryByte[T any](t *testing.T, whole []byte, encode func([]byte, T) []byte, decode func([]byte) (T, error)) {
	t.Helper()
	if v, err := decode(whole); err != nil || !bytes.Equal(encode(nil, v), whole) {
		t.Errorf("%x is read as %+v, %v", whole, v, err)
	}
	mustHaveOneEncoding(t, append(bytes.Clone(whole), 0), encode, decode)
	for n := range whole {
		mustHaveOneEncoding(t, whole[:n], encode, decode)
	}
	tooLong, endless := append(bytes.Repeat([]byte{0xff}, 9), 2), append(bytes.Repeat([]byte{0xff}, 10), 1)
	for at, was := range whole {
		others := [][]byte{{}, {was | 0x80, 0}, tooLong, endless}
		for v := range byte(6) {
			others = append(others, []byte{v})
		}
		for bit := range 8 {
			others = append(others, []byte{was ^ 1<<bit})
		}
		for _, other := range others {
			mustHaveOneEncoding(t, slices.Concat(whole[:at], other, whole[at+1:]), encode, decode)
		}
	}
}

// mustHaveOneEncoding fails the test if bytes are read that would not be written, or refused as something else than corrupt.
func mustHaveOneEncoding[T any](t *testing.T, in []byte, encode func([]byte, T) []byte, decode func([]byte) (T, error)) {
	t.Helper()
	v, err := decode(in)
	if err != nil {
		if !errors.Is(err, ledger.ErrCorrupt) {
			t.Fatalf("decoding %x: %v is not ErrCorrupt", in, err)
		}
	} else if again := encode(nil, v); !bytes.Equal(again, in) {
		t.Fatalf("%x is read as %+v and written as %x", in, v, again)
	}
}

// F27: counts and lengths that lie take no memory out of proportion to what was read.
func TestDecodersTakeMemoryInProportionToTheirInput(t *testing.T) {
	const size = 1 << 20
	block, base, zeros := AppendEvent(nil, &ledger.Block{})[:38], AppendEvent(nil, &ledger.BaseState{}), make([]byte, size)
	dataBase := AppendEvent(nil, &ledger.BaseState{Accounts: []ledger.AccountWrite{{Known: ledger.FieldData}}})
	file, _ := writeEvents(t, nil)
	for name, tt := range map[string]struct {
		in   []byte
		most uint64
		want error
	}{
		"keys":         {slices.Concat(block, []byte{0xff, 0xff, 0x01}, zeros), 8 * size, ledger.ErrCorrupt},
		"keys beyond":  {slices.Concat(block, []byte{0xff, 0xff, 0x3f}, zeros), 8 * size, ledger.ErrCorrupt},
		"transactions": {slices.Concat(block, []byte{0, 0xff, 0x7c}, zeros), 8 * size, ledger.ErrCorrupt},
		"writes":       {slices.Concat(base[:3], []byte{0xff, 0xf0, 0x01}, zeros), 8 * size, ledger.ErrCorrupt},
		"mint writes":  {slices.Concat(base[:4], []byte{0xff, 0xe0, 0x01}, zeros), 8 * size, ledger.ErrCorrupt},
		"data":         {slices.Concat(dataBase[:len(dataBase)-1], []byte{0xff, 0xff, 0xff, 0x04}, zeros), 8 * size, ledger.ErrCorrupt},
		"a frame":      {append(binary.AppendUvarint(file, MaxEventBytes), 0, 0, 0, 0, 1, 2), size, io.ErrUnexpectedEOF},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeEvent(tt.in)
		if name == "a frame" {
			_, _, err = readEvents(bytes.NewReader(tt.in))
		}
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, tt.want) || taken > tt.most {
			t.Errorf("%s: err = %v, want %v; decoding %d bytes took %d, want at most %d", name, err, tt.want, len(tt.in), taken, tt.most)
		}
	}
}

func TestValuesOfUnknownFieldsAreNotWritten(t *testing.T) {
	got, err := DecodeEvent(AppendEvent(nil, &ledger.BaseState{Accounts: []ledger.AccountWrite{{
		Lamports: 1, Owner: ledger.TokenProgram, RentEpoch: 7, Known: 0xc0,
	}}}))
	ledgertest.Must(t, err)
	ledgertest.Equal(t, got.(*ledger.BaseState).Accounts[0], ledger.AccountWrite{Lamports: 1}, "what is read")
}

func FuzzDecodeEvent(f *testing.F) {
	events, _ := goldenValues()
	fuzzDecoder(f, events, AppendEvent, DecodeEvent)
}

func FuzzDecodeRecord(f *testing.F) {
	_, records := goldenValues()
	fuzzDecoder(f, append(records, goldenWallets()...), AppendRecord, DecodeRecord)
}

// fuzzDecoder checks that whatever is decoded has one encoding.
func fuzzDecoder[T any](f *testing.F, seeds []T, encode func([]byte, T) []byte, decode func([]byte) (T, error)) {
	for _, v := range seeds {
		f.Add(encode(nil, v))
	}
	f.Fuzz(func(t *testing.T, in []byte) { mustHaveOneEncoding(t, in, encode, decode) })
}

func TestDataBeforeUpdatesSharesNoMoreThanTheRecordIsLong(t *testing.T) {
	data := bytes.Repeat([]byte{1}, 1000)
	r := &ledger.Record{Kind: ledger.BlockRecord, Block: &ledger.Block{Accounts: make([]ledger.AccountWrite, 100)}}
	w := &r.Block.Accounts[0]
	w.Lamports, w.Known, w.Data = 1, ledger.FieldOwner|ledger.FieldData, ledger.NewData(data)
	for range r.Block.Accounts {
		r.Updates = append(r.Updates, ledger.Update{Account: w.AsWritten(1, 0), Written: 1, DataBefore: ledger.Some(ledger.NewData(data[1:]))})
	}
	if _, err := DecodeRecord(AppendRecord(nil, r)); !errors.Is(err, ledger.ErrCorrupt) {
		t.Errorf("100 updates of one write with data of 1,000 bytes: %v", err)
	}
}

// TestSharedBytesAreThoseOfTheNaive compares what begins and ends both of two texts with what is found byte by byte.
func TestSharedBytesAreThoseOfTheNaive(t *testing.T) {
	r := ledgertest.Seeded(t, 1)
	for range 20_000 {
		a := bytes.Repeat([]byte{1}, r.IntN(40))
		b := bytes.Repeat([]byte{1}, max(0, len(a)+r.IntN(3)*(r.IntN(3)-1)))
		for range r.IntN(3) {
			if len(a) > 0 {
				a[r.IntN(len(a))] = 2
			}
			if len(b) > 0 {
				b[r.IntN(len(b))] = byte(2 + r.IntN(2))
			}
		}
		start, end := 0, 0
		for start < min(len(a), len(b)) && a[start] == b[start] {
			start++
		}
		for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
			end++
		}
		if gotStart, gotEnd := shared(a, b); gotStart != start || gotEnd != end {
			t.Fatalf("shared(%x, %x) = %d, %d, want %d, %d", a, b, gotStart, gotEnd, start, end)
		}
	}
}
