package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
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
	events, records := goldens(t)
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

// goldens returns what the golden files hold, the oldest format versions first: one of each kind, with every optional part once there and once not.
func goldens(t testing.TB) (events []ledger.Event, records []*ledger.Record) {
	t.Helper()
	eachGolden(t, func(_ string, encoded []byte, isRecord bool) {
		if isRecord {
			r, err := DecodeRecord(encoded)
			ledgertest.Must(t, err)
			records = append(records, r)
		} else {
			e, err := DecodeEvent(encoded)
			ledgertest.Must(t, err)
			events = append(events, e)
		}
	})
	return events, records
}

// eachGolden visits the encodings in the golden files, file by file.
func eachGolden(t testing.TB, visit func(file string, encoded []byte, isRecord bool)) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.golden")
	ledgertest.Must(t, err)
	ledgertest.Equal(t, files, []string{
		"testdata/codec.golden", "testdata/codec2.golden", "testdata/codec3.golden", "testdata/codec4.golden",
		"testdata/codec5.golden", "testdata/codec6.golden", "testdata/codec6before.golden", "testdata/codec7.golden",
	}, "the golden files")
	for _, file := range files {
		for line := range strings.Lines(string(ledgertest.ReadFile(t, file))) {
			if kind, digits, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(kind, "*ledger.") {
				encoded, err := hex.DecodeString(digits)
				ledgertest.Must(t, err)
				visit(file, encoded, kind == "*ledger.Record")
			}
		}
	}
}

// F51: TestEncodingIsTheOneOfItsVersion reads encodings of every format version and holds what they say, and what it is written as, to the golden
// files: log, snapshots and files written by an older program must stay readable. What a field does not have is left out.
func TestEncodingIsTheOneOfItsVersion(t *testing.T) {
	got := map[string]string{}
	eachGolden(t, func(file string, encoded []byte, isRecord bool) {
		if isRecord {
			got[file] += described(t, encoded, AppendRecord, DecodeRecord)
		} else {
			got[file] += described(t, encoded, AppendEvent, DecodeEvent)
		}
	})
	for file, text := range got {
		ledgertest.Golden(t, file, text, *update)
	}
}

// described returns the encoding of what an encoding is read as, and that itself.
func described[T any](t *testing.T, encoded []byte, encode func([]byte, T) []byte, decode func([]byte) (T, error)) string {
	t.Helper()
	v, err := decode(encoded)
	ledgertest.Must(t, err)
	return fmt.Sprintf("%T %x%s\n", v, encode(nil, v), show(reflect.ValueOf(v), "\t"))
}

// show writes a value, with each item of a list, and each field of a struct that is not zero, on a line of its own.
func show(v reflect.Value, indent string) string {
	var parts []string
	switch known := v.Interface().(type) {
	case ledger.Data:
		return fmt.Sprintf(" %x", known.Bytes())
	case ledger.Pubkey, ledger.Hash, ledger.Signature, ledger.StateHash:
		return fmt.Sprint(" ", known)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return show(v.Elem(), indent)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			parts = append(parts, "-"+show(v.Index(i), indent+"\t"))
		}
	case reflect.Struct:
		if known := v.FieldByName("Known"); v.NumField() == 2 && known.IsValid() && known.Kind() == reflect.Bool { // it is there, and a ledger.Opt
			return show(v.FieldByName("Value"), indent)
		}
		for i, field := range reflect.VisibleFields(v.Type()) {
			if !v.Field(i).IsZero() {
				parts = append(parts, field.Name+":"+show(v.Field(i), indent+"\t"))
			}
		}
	default:
		return fmt.Sprint(" ", v)
	}
	return strings.Join(append([]string{""}, parts...), "\n"+indent)
}

// F4, F51: TestEachValueHasOneEncoding changes every byte of encodings: what is read is written as the same bytes, all else is refused.
func TestEachValueHasOneEncoding(t *testing.T) {
	events, records := goldens(t)
	for _, e := range events {
		changeEveryByte(t, AppendEvent(nil, e), AppendEvent, DecodeEvent)
	}
	for _, r := range records {
		changeEveryByte(t, AppendRecord(nil, r), AppendRecord, DecodeRecord)
	}
	_, err := DecodeRecord([]byte{8})
	ledgertest.ErrorSays(t, err, "format version 8, this program reads up to 7", "a record of a newer program")
}

// TestWhatNobodyWritesIsRefused reads what has one encoding too, and stands for nothing.
func TestWhatNobodyWritesIsRefused(t *testing.T) {
	_, records := goldens(t)
	records[1].Updates[0].Account.Known |= ledger.FieldMint
	_, err := DecodeRecord(AppendRecord(nil, records[1]))
	ledgertest.ErrorIs(t, err, ledger.ErrCorrupt, "an update that tells of a mint")
	for what, in := range map[string][]byte{
		"a level of base state":      {1, kindLevelState, byte(ledger.Finalized), 0, 0, 0},
		"a status of a slot":         {1, kindSlotStatus, 0, byte(ledger.StatusDead) + 1, 1},
		"a state of a token account": slices.Concat([]byte{1, kindBaseState, 0, 1, flagHasToken}, make([]byte, 32), []byte{1, tokenStateMask, 0}),
	} {
		_, err := DecodeEvent(in)
		ledgertest.ErrorIs(t, err, ledger.ErrCorrupt, "%s", what)
	}
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
	events, _ := goldens(f)
	fuzzDecoder(f, events, AppendEvent, DecodeEvent)
}

func FuzzDecodeRecord(f *testing.F) {
	_, records := goldens(f)
	fuzzDecoder(f, records, AppendRecord, DecodeRecord)
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
