package file

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
)

// checkPlain decodes a line in the fast way and, if that takes it, in the way that judges. It
// fails the test where they differ, and reports whether the line was taken.
func checkPlain(t interface{ Fatalf(string, ...any) }, p *plainDecoder, line []byte) bool {
	data := new(nodejson.DataDecoder)
	defer data.Close()
	before := bytes.Clone(line)
	got, ok := p.decode(line, data)
	if !bytes.Equal(line, before) {
		t.Fatalf("the line was changed: %q, was %q", line, before)
	}
	if !ok {
		return false
	}
	want, err := decodeLine(line, data)
	if err != nil {
		t.Fatalf("%q was taken, but is refused: %v", line, err)
	}
	clear(line) // the event must not hold on to it
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\n got %+v\nwant %+v", before, got, want)
	}
	return true
}

func TestLinesOfEventsAreDecodedInTheFastWay(t *testing.T) {
	var p plainDecoder
	rapid.Check(t, func(t *rapid.T) {
		if line := AppendEventLine(nil, genEvent(t)); !checkPlain(t, &p, line) {
			t.Fatalf("%s was not taken", line)
		}
	})
}

// The same events as other programs write them: with white space, in another order, with nulls.
func TestPlainLinesAreDecodedInTheFastWay(t *testing.T) {
	k, sig := testKey(1), testSignature(2)
	account := fmt.Sprintf(`{"pubkey":%q,"lamports":5`, k)
	owned := account + fmt.Sprintf(`,"owner":%q`, ledger.TokenProgram)
	token := fmt.Sprintf(`,"token":{"owner":%q,"amount":"18446744073709551615","mint":%q`, k, k)
	accounts := func(list string) string { return `{"type":"accounts","slot":1,"accounts":[` + list + `]}` }
	for name, line := range map[string]string{
		"white space":    "\t{ \"type\" : \"slot\" ,\r \"slot\" : 5 , \"status\" : \"dead\" } \r\n",
		"type at end":    `{"status":"confirmed","slot":18446744073709551615,"type":"slot"}`,
		"nulls":          fmt.Sprintf(`{"block_time":null,"block_height":null,"previous_blockhash":null,"transactions":null,"accounts":null,"commitment":null,"transaction_count":null,"status":null,"blockhash":%q,"parent_slot":0,"slot":0,"type":"block"}`, k),
		"null, then not": `{"status":null,"slot":null,"status":"dead","slot":5,"type":"slot"}`,
		"empty lists":    fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"block_time":-5,"transactions":[ ],"accounts":[ ]}`, k),
		"transactions":   fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"transactions":[{"accounts":[%q, %q],"fee":5,"success":false,"signature":%q},{"signature":%q,"accounts":[]},{"signature":%q,"fee":null,"success":null,"accounts":null}]}`, k, k, k, sig, sig, sig),
		"accounts":       accounts(account + `},` + owned + `,"executable":true,"rent_epoch":0},` + account + `,"owner":null,"executable":null,"rent_epoch":null,"data":null,"token":null,"mint":null}`),
		"data":           accounts(owned + `,"data":""},` + owned + `,"data":"QUJDRA=="}`),
		"balance":        accounts(account + token + `}}`),
		"token":          accounts(account + token + fmt.Sprintf(`,"state":"frozen","delegate":%q,"delegated_amount":"0","close_authority":null,"is_native":false}}`, k)),
		"no facts":       accounts(account + `,"token":false,"mint":false}`),
		"mint":           accounts(account + `,"mint":{"decimals":255,"supply":"0","scaled":true}}`),
		"mint alone":     accounts(fmt.Sprintf(`{"mint":{"decimals":6,"supply":null},"pubkey":%q}`, k)),
		"unread fields":  fmt.Sprintf(`{"type":"slot","slot":5,"status":"dead","block_time":9223372036854775807,"commitment":"anything","accounts":[%s}]}`, account),
	} {
		if !checkPlain(t, new(plainDecoder), []byte(line)) {
			t.Errorf("%s: %s was not taken", name, line)
		}
	}
}

// What JSON allows beyond that is read all the same, as encoding/json reads it.
func TestOtherLinesAreLeftToTheJudge(t *testing.T) {
	key := mustKey(testKey(1))
	dead := func(slot ledger.Slot) ledger.Event {
		return &ledger.SlotStatus{Slot: slot, Status: ledger.StatusDead}
	}
	account := func(lamports ledger.Lamports) ledger.Event {
		return &ledger.BaseState{Slot: 1, Accounts: []ledger.AccountWrite{{Pubkey: key, Lamports: lamports}}}
	}
	accounts := func(format string) string {
		return fmt.Sprintf(`{"type":"accounts","slot":1,"accounts":[{"pubkey":%q,`+format+`}]}`, key)
	}
	hash := ledger.Hash(key)
	block := &ledger.Block{Slot: 2, ParentSlot: 1, Blockhash: hash, TransactionCount: 1, Accounts: []ledger.AccountWrite{}}
	block.AddTransaction(ledger.Transaction{Signature: ledger.Signature{1: 2, 63: 1}, Accounts: []ledger.Pubkey{}})
	for line, want := range map[string]ledger.Event{
		fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"transactions":[{"signature":%q,"accounts":[%q],"accounts":[]}]}`, hash, testSignature(2), key): block,
		accounts(`"lamports":5`)[:len(accounts(`"lamports":5`))-1] + `,"accounts":[]}`:                                                                                       &ledger.BaseState{Slot: 1, Accounts: []ledger.AccountWrite{}},
		`{"type":"slot","slot":5,"slot":6,"status":"dead"}`:                                                                                                                  dead(6),
		`{"type":"slot","slot":5,"status":"confirmed","status":"dead"}`:                                                                                                      dead(5),
		`{"type":"slot","slot":5,"status":"dead","status":null}`:                                                                                                             dead(5),
		`{"type":"slot","slot":5,"status":"de\u0061d"}`:                                                                                                                      dead(5),
		`{"type":"slot","slot":5,"st\u0061tus":"dead"}`:                                                                                                                      dead(5),
		`{"type":"slot","slot":5,"Status":"dead"}`:                                                                                                                           dead(5),
		`{"type":"slot","slot":5,"status":"dead","colour":{"red":[1e3]}}`:                                                                                                    dead(5),
		`{"type":"slot","slot":5,"status":"dead","commitment":"\ud83d\""}`:                                                                                                   dead(5),
		`{"type":"slot","slot":5,"status":"dead","accounts":[null,{}]}`:                                                                                                      dead(5),
		`{"type":"slot","slot":5,"status":"dead","block_time":-0}`:                                                                                                           dead(5),
		`{"type":"slot","slot":5,"slot":,"status":"dead"}`:                                                                                                                   nil,
		`{"type":"slot","slot":5,"status":"dead","commitment":"\q"}`:                                                                                                         nil,
		"{\"type\":\"slot\",\"slot\":5,\"status\":\"dead\",\"commitment\":\"\t\"}":                                                                                           nil,
		accounts(`"lamports":5,"lamports":6`):                                                                                                                                account(6),
		accounts(`"lamports":5,"Lamports":6`):                                                                                                                                account(6),
		accounts(`"lamports":6,"colour":7`):                                                                                                                                  account(6),
		accounts(`"lamports":6,"token":{"colour":7},"token":null`):                                                                                                           nil,
	} {
		checkPlain(t, new(plainDecoder), []byte(line))
		got, err := parse([]byte(line))
		if (err == nil) != (want != nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, err = %v; want %+v", line, got, err, want)
		}
	}
}

// Whatever byte of a line is lost, changed, added or said twice: a line that is still decoded
// in the fast way means the same to the judge.
func TestBothWaysAgreeOnEveryChangedByte(t *testing.T) {
	lines := [][]byte{
		[]byte(`{"type":"accounts","slot":6,"accounts":[{"pubkey":"` + testKey(1) + `","lamports":1,"owner":"` + testKey(2) + `","data":"QUJDRA=="}]}` + "\n"),
	}
	for _, e := range goldenEvents() {
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
	const others = "\x00\n\r \",-.09:[\\]eA{}n\xff"
	var p plainDecoder
	taken, left := 0, 0
	check := func(parts ...[]byte) {
		if checkPlain(t, &p, bytes.Join(parts, nil)) {
			taken++
		} else {
			left++
		}
	}
	for _, line := range lines {
		for i := range line {
			if isWord(line[max(i-4, 0):min(i+4, len(line))]) {
				continue // one byte of a key is like the next
			}
			front, behind := line[:i], line[i+1:]
			check(front)
			check(front, behind)
			check(front, line[i:i+1], line[i:])
			for j := range len(others) {
				check(front, []byte(others[j:j+1]), behind)
				check(front, []byte(others[j:j+1]), line[i:])
			}
		}
	}
	if taken == 0 || left == 0 {
		t.Errorf("%d lines taken, %d left: nothing was compared", taken, left)
	}
}

func isWord(b []byte) bool {
	for _, c := range b {
		if !isAlphanumeric(c) {
			return false
		}
	}
	return true
}

// linesOf returns base state of n accounts with so many lamports, and as many mints.
func linesOf(n int, lamports uint64) []byte {
	state := &ledger.BaseState{Slot: 3}
	for range n {
		state.Accounts = append(state.Accounts, ledger.AccountWrite{Pubkey: mustKey(testKey(1)), Lamports: ledger.Lamports(lamports)})
		state.Mints = append(state.Mints, ledger.MintWrite{Pubkey: mustKey(testKey(2)), Mint: ledger.Mint{Decimals: uint8(lamports)}})
	}
	return AppendEventLine(nil, state)
}

// The space that the fast way keeps does not stay as large as the largest line made it, and is
// no part of an event that was handed out.
func TestScratchSpaceIsBoundedAndItsOwn(t *testing.T) {
	var p plainDecoder
	for _, n := range []int{1, 3, 70, maxScratch - 1, maxScratch + 1, 3 * maxScratch, 2} {
		first, ok := p.decode(linesOf(n, 5), new(nodejson.DataDecoder))
		if !ok || !checkPlain(t, &p, linesOf(n, 6)) {
			t.Fatalf("%d accounts: the line was not taken", n)
		}
		if want, err := decodeLine(linesOf(n, 5), new(nodejson.DataDecoder)); err != nil || !reflect.DeepEqual(first, want) {
			t.Fatalf("%d accounts: the next line changed the event of the one before", n)
		}
		if room := max(cap(p.accounts), cap(p.mints)); room > maxScratch {
			t.Errorf("%d accounts: room for %d is kept, want at most %d", n, room, maxScratch)
		}
		if !reflect.DeepEqual(p.head, plainHead{}) || p.text != nil || !reflect.DeepEqual(p.account, plainAccount{}) {
			t.Errorf("%d accounts: the line is held after it was decoded", n)
		}
	}
}

// A line's memory is bounded by its length, whatever it holds most of.
func TestLongLinesAllocateInProportion(t *testing.T) {
	k := strings.Repeat("1", 32)
	account := `{"pubkey":"` + k + `","lamports":0`
	list := func(item string) string {
		return strings.Repeat(item+",", 1<<20/len(item)) + item + "]}"
	}
	accounts, transactions := `{"type":"accounts","slot":1,"accounts":[`, `{"type":"block","slot":1,"parent_slot":0,"blockhash":"`+k+`","transactions":[`
	for name, line := range map[string]string{
		"accounts":                 accounts + list(account+"}"),
		"accounts, the first long": accounts + account + `,"rent_epoch":0` + strings.Repeat(" ", 1000) + "}," + list(account+"}"),
		"accounts, then long":      accounts + strings.Repeat(account+"},", 100) + list(account+strings.Repeat(" ", 1000)+"}"),
		"tokens":                   accounts + list(account+`,"token":{"mint":"`+k+`","amount":"0"}}`),
		"mints":                    accounts + list(account+`,"mint":{"decimals":0}}`),
		"mints alone":              accounts + list(`{"pubkey":"`+k+`","mint":{"decimals":0}}`),
		"transactions":             transactions + list(`{"signature":"`+k+k+`"}`),
		"keys":                     transactions + `{"signature":"` + k + k + `","accounts":[` + strings.TrimSuffix(list(`"`+k+`"`), "}") + "}]}",
	} {
		var p plainDecoder
		text := []byte(line)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, ok := p.decode(text, new(nodejson.DataDecoder))
		runtime.ReadMemStats(&after)
		times := float64(after.TotalAlloc-before.TotalAlloc) / float64(len(line))
		t.Logf("%s: %.1f times the line", name, times)
		if !ok || times > 6 {
			t.Errorf("%s: taken %v, allocates %.1f times the line, want at most 6", name, ok, times)
		}
	}
}

// FuzzPlainLine: what the fast way takes, encoding/json takes for the same event.
func FuzzPlainLine(f *testing.F) {
	released, err := os.ReadFile(filepath.Join("testdata", "events.ndjson"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(released) {
		f.Add(line)
	}
	for _, tt := range badInputs(f) {
		for line := range strings.Lines(tt.content) {
			if len(line) < readAheadBytes {
				f.Add([]byte(line))
			}
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		checkPlain(t, new(plainDecoder), bytes.Clone(line))
	})
}
