package file

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/nodejson"
)

var fieldNames = strings.Fields(`type slot parent_slot blockhash previous_blockhash block_time block_height commitment transaction_count
	transactions accounts status signature success fee pubkey lamports owner executable rent_epoch data token mint
	amount state delegate delegated_amount close_authority is_native decimals supply scaled`)

// plainJSON returns a value as encoding/json reads it, without what event lines do not read: nulls, unknown fields, and
// all but the last of the values given to a field. twice is set where there are such.
func plainJSON(d *json.Decoder, twice *bool) any {
	token, _ := d.Token()
	switch token {
	case json.Delim('{'):
		object := map[string]any{}
		for d.More() {
			name, _ := d.Token()
			if v := plainJSON(d, twice); v != nil && strings.Contains(" "+strings.Join(fieldNames, " ")+" ", " "+name.(string)+" ") {
				_, known := object[name.(string)]
				object[name.(string)], *twice = v, *twice || known
			}
		}
		d.Token()
		return object
	case json.Delim('['):
		list := []any{}
		for d.More() {
			list = append(list, plainJSON(d, twice))
		}
		d.Token()
		return list
	}
	return token
}

// checkLine fails the test unless a line is refused as encoding/json refuses it, or read as what encoding/json makes of it
// is read. A field that is given twice may have a line refused for the first value, which encoding/json does not look at.
func checkLine(t testing.TB, line []byte) (event ledger.Event, err error) {
	t.Helper()
	before := bytes.Clone(line)
	event, err = parse(line)
	if !bytes.Equal(line, before) {
		t.Fatalf("the line was changed: %q, was %q", line, before)
	}
	if syntax := json.Unmarshal(line, new(json.RawMessage)); syntax != nil {
		if want := nodejson.PlainError(syntax).Error(); err == nil || err.Error() != want {
			t.Fatalf("%q: got %+v, err = %v, want %s", line, event, err, want)
		}
		return event, err
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	twice := false
	plain, _ := json.Marshal(plainJSON(decoder, &twice))
	want, wantErr := parse(plain)
	if twice && err != nil {
		return event, err
	}
	if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(event, want) {
		t.Fatalf("%q:\n got %+v, err = %v\nwant %+v, err = %v, as of %s", line, event, err, want, wantErr, plain)
	}
	return event, err
}

func TestLinesAreNestedAsDeepAsJSON(t *testing.T) {
	for depth, ok := range map[int]bool{9_999: true, 10_001: false} {
		line := `{"type":"slot","slot":5,"status":"dead","x":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}"
		_, err := checkLine(t, []byte(line))
		ledgertest.Equal(t, err == nil, ok, "whether a line %d deep is read: %v", depth, err)
	}
}

// Whatever byte of a line is lost, changed, added or said twice.
func TestEveryChangedByteIsReadAsJSON(t *testing.T) {
	t.Parallel()
	lines := [][]byte{[]byte(`{"type":"accounts","slot":6,"accounts":[{"pubkey":"` + testKey(1) + `","lamports":1,"owner":"` + testKey(2) + `","data":"QUJDRA=="}]}`)}
	for _, e := range events(t, goldenLines) {
		switch e := e.(type) {
		case *ledger.BaseState: // one account a line, to have short ones
			for i := range e.Accounts {
				lines = append(lines, AppendEventLine(nil, &ledger.BaseState{Slot: e.Slot, Accounts: e.Accounts[i : i+1]}))
			}
			lines = append(lines, AppendEventLine(nil, &ledger.BaseState{Slot: e.Slot, Mints: e.Mints}))
		case *ledger.Block:
			lines = append(lines, AppendEventLine(nil, e.WithoutWrites()))
		default:
			lines = append(lines, AppendEventLine(nil, e))
		}
	}
	step, every := ledgertest.Sample(1, 5, 20), ledgertest.Sample(1, 1, 3) // the others of a byte are some, in turn
	const others = "\x00\r \",-.09:[\\]eA{}n\xff"
	read, refused := 0, 0
	check := func(parts ...[]byte) {
		if _, err := checkLine(t, bytes.Join(parts, nil)); err == nil {
			read++
		} else {
			refused++
		}
	}
	for _, line := range lines {
		for i := 0; i < len(line); i += every {
			if !bytes.ContainsFunc(line[max(i-4, 0):min(i+4, len(line))], func(c rune) bool { return !isAlphanumeric(c) }) {
				continue // one byte of a key is like the next
			}
			front, behind := line[:i], line[i+1:]
			check(front)
			check(front, behind)
			check(front, line[i:i+1], line[i:])
			for j := i % step; j < len(others); j += step {
				check(front, []byte(others[j:j+1]), behind)
				check(front, []byte(others[j:j+1]), line[i:])
			}
		}
	}
	if read == 0 || refused == 0 {
		t.Errorf("%d lines read, %d refused: nothing was compared", read, refused)
	}
}

// F27: the memory that a line takes is bounded by its length, whatever it holds most of.
func TestLongLinesAllocateInProportion(t *testing.T) {
	size, most := 16<<20, 8.0
	if testing.Short() { // while slices are short they grow by more
		size, most = 2<<20, 12
	}
	k := strings.Repeat("1", 32)
	account := `{"pubkey":"` + k + `","lamports":0`
	accounts, transactions := `{"type":"accounts","slot":1,"accounts":[`, `{"type":"block","slot":1,"parent_slot":0,"blockhash":"`+k+`","transactions":[`
	for name, tt := range map[string]struct{ front, item, end string }{
		"accounts":        {accounts, account + "}", "]}"},
		"tokens":          {accounts, account + `,"token":{"mint":"` + k + `","amount":"0"}}`, "]}"},
		"mints":           {accounts, account + `,"mint":{"decimals":0}}`, "]}"},
		"mints alone":     {accounts, `{"pubkey":"` + k + `","mint":{"decimals":0}}`, "]}"},
		"transactions":    {transactions, `{"signature":"` + k + k + `"}`, "]}"},
		"keys":            {transactions + `{"signature":"` + k + k + `","accounts":[`, `"` + k + `"`, "]}]}"},
		"unknown objects": {`{"type":"slot","slot":5,"status":"dead","x":[`, "{}", "]}"},
		"empty accounts":  {accounts, "{}", "]}"},
		"a token's texts": {accounts + account + `,"token":{`, `"mint":"` + k + `"`, `,"amount":"0"}}]}`},
	} {
		line := []byte(tt.front + strings.Repeat(tt.item+",", size/len(tt.item)) + tt.item + tt.end)
		d := lineDecoder{data: new(nodejson.DataDecoder)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := d.decodeLine(line)
		runtime.ReadMemStats(&after)
		times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(line))
		t.Logf("%s: %.1f times the line, err = %v", name, times, err)
		if times > most || (err != nil) != (name == "empty accounts") {
			t.Errorf("%s: allocates %.1f times the line, want at most %v; err = %v", name, times, most, err)
		}
	}
}

// F27: lines are read as encoding/json reads them.
func FuzzLine(f *testing.F) {
	for line := range bytes.Lines(datatest.Read(f, goldenLines)) {
		f.Add(line)
	}
	for _, list := range []string{"read.txt", "refused.txt"} {
		for _, lines := range datatest.Entries(f, list) {
			f.Add([]byte(lines[1]))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') < 0 {
			checkLine(t, line)
		}
	})
}
