package file

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
)

// badWord is the word that bad input holds wherever it has room for one, and that no message
// may repeat.
const badWord = "Zanzibar"

// badInput is the content of a file and what is said of it after "cannot read FILE: ".
type badInput struct{ content, want string }

// badInputs returns what testdata/refused.txt lists by name, and the files of badFiles. What is refused as line 3 is
// an event line, and becomes the third one of a good file. Bytes are quoted as Go does.
func badInputs(t testing.TB) map[string]badInput {
	t.Helper()
	all := badFiles(t)
	for _, lines := range datatest.Entries(t, "refused.txt") {
		content, want := lines[1], strings.TrimPrefix(lines[2], "> ")
		if strings.HasPrefix(lines[0], "# bytes: ") {
			var err error
			content, err = strconv.Unquote(content)
			must(t, err)
		} else if strings.HasPrefix(want, "line 3: ") {
			content = blockLine(1, 0) + "\n" + content + "\n" + blockLine(2, 1)
		}
		all[lines[0]] = badInput{content, want}
	}
	return all
}

func badFiles(t testing.TB) map[string]badInput {
	outOfOrder := eventFileOf(t, &ledger.Block{Slot: 1}, &ledger.Block{Slot: 4, ParentSlot: 4})
	return map[string]badInput{
		"empty":                   {"", "it is empty"},
		"empty gzip":              {gzipped(t, ""), "it is empty"},
		"empty zstd":              {zstded(t, ""), "it is empty"},
		"cut gzip":                {gzipped(t, blockLine(1, 0))[:40], "line 1: its gzip packing ends too early"},
		"cut zstd":                {zstded(t, blockLine(1, 0))[:40], "its zstd packing ends too early"},
		"an event file, cut":      {codec.EventFileMagic, "event file at byte 0: unexpected EOF"},
		"an event file, tomorrow": {codec.EventFileMagic + "\xff\xff\xff\xff", "event file at byte 0: corrupt encoding: format version 4294967295, only 1 is known"},
		"an event of no order":    {outOfOrder, "event 2: the slot is not above its parent's"},
		"an event, cut":           {outOfOrder[:30], "event 1: event file at byte 12: unexpected EOF"},
		"cut line":                {blockLine(1, 0) + `{"type":"slot","slot":1,"sta`, "line 2: it ends inside a JSON value"},
		"long transaction":        {fmt.Sprintf(`{"parentSlot":5,"blockhash":%q,"transactions":[{"transaction":[%q,"base64"]}]}`, testKey(1), strings.Repeat("A", 64<<10+1)), "transaction 0: /transaction: it is too long"},
		"many transactions":       {`{"transactions":[` + strings.Repeat("{},", 2*manyElements) + "]}", "JSON value of too many lists and objects"},
		"long base58":             {fmt.Sprintf(`{"pubkey":%q,"lamports":1,"data":%q}`, testKey(1), strings.Repeat("z", 3000)), "data is not base58"},
	}
}

// F27: damaged input is refused, and no message repeats it.
func TestBadInputIsRefusedWithoutRepeatingIt(t *testing.T) {
	for name, tt := range badInputs(t) {
		path := write(t, "a", tt.content)
		s, _ := open(t, path)
		got, err := run(s, nil)
		if want := "cannot read " + path + ": " + tt.want; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, want)
			continue
		}
		if strings.Contains(err.Error(), badWord) {
			t.Errorf("%s: the message repeats the input: %v", name, err)
		}
		// What stood in front of the error has been emitted; nothing after it.
		for _, e := range got {
			if b, ok := e.(*ledger.Block); !ok || (b.Slot != 1 && b.Slot != 6) {
				t.Errorf("%s: emitted %s", name, outline(got))
			}
		}
	}
}

// F27: a line or a value that is too long is refused before it is held.
func TestLinesAndValuesAreBounded(t *testing.T) {
	t.Parallel()
	first := blockLine(1, 0)
	s, _ := open(t, "-")
	for name, tt := range map[string]struct{ tail, want string }{
		"a longest line": {strings.Repeat(" ", MaxLineBytes-1) + "\n", ""},
		"one byte more":  {strings.Repeat(" ", MaxLineBytes) + "\n", "cannot read standard input: line 2: line longer than 64 MiB"},
	} {
		s.stdin = strings.NewReader(first + tt.tail)
		got, err := run(s, nil)
		if fmt.Sprint(err) != tt.want && (err != nil || tt.want != "") || outline(got) != "block 1" {
			t.Errorf("%s: got %s, err = %v", name, outline(got), err)
		}
	}
	limit := valueLimit{r: strings.NewReader("some bytes"), bytes: maxValueBytes - 4}
	if n, err := limit.Read(make([]byte, 4)); n != 4 || err != nil {
		t.Errorf("within the bound: %d, %v", n, err)
	}
	if n, err := limit.Read(make([]byte, 4)); n != 0 || err != errValueTooLong {
		t.Errorf("past the bound: %d, %v", n, err)
	}
}
