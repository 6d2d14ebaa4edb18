package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func blockLine(slot, parent uint64) string {
	return fmt.Sprintf(`{"type":"block","slot":%d,"parent_slot":%d,"blockhash":%q}`, slot, parent, testKey(byte(slot))) + "\n"
}

func accountsLine(slot uint64, lamports int) string {
	return fmt.Sprintf(`{"type":"accounts","slot":%d,"accounts":[{"pubkey":%q,"lamports":%d}]}`, slot, testKey(1), lamports) + "\n"
}

// outline names events by kind and slot, and a status by the block that it is of.
func outline(events []ledger.Event) string {
	var words []string
	for _, e := range events {
		switch e := e.(type) {
		case *ledger.Block:
			word := fmt.Sprintf("block %d", e.Slot)
			if e.PreviousBlockhash.Known {
				word += fmt.Sprintf(" on %d", e.PreviousBlockhash.Value[1])
			}
			words = append(words, word)
		case *ledger.BaseState:
			words = append(words, fmt.Sprintf("base %d", e.Slot))
		case *ledger.SlotStatus:
			word := fmt.Sprintf("%s %d", e.Status, e.Slot)
			if e.Blockhash.Known {
				word += fmt.Sprintf(" of %d", e.Blockhash.Value[1])
			}
			words = append(words, word)
		default:
			words = append(words, fmt.Sprint(e))
		}
	}
	return strings.Join(words, ", ")
}

func TestInfoSaysWhatTheSequencerMustKnow(t *testing.T) {
	spec := write(t, "a.json", "{}") + "?gaps=allow"
	s, _ := open(t, spec)
	want := ledger.SourceInfo{Name: "file:" + spec, GapsAllowed: true, FinalityByDepth: true}
	ledgertest.Equal(t, s.Info(), want, "info")
}

func TestInputsAreReadInOrder(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"20.ndjson": blockLine(2, 1), "10.ndjson": blockLine(1, 0), "3.ndjson": blockLine(3, 2),
		".hidden": "never read", "sub/9.ndjson": blockLine(9, 8), "notes.txt": "no ledger here",
	} {
		writeFile(t, filepath.Join(dir, name), content)
	}
	s, lines := open(t, write(t, "z.ndjson", blockLine(9, 8))+","+dir+","+write(t, "a.ndjson", blockLine(4, 3)))
	got, err := run(s, nil)
	if want := "block 9, block 1, block 2, block 3, block 4"; err != nil || outline(got) != want {
		t.Errorf("got %s, err = %v; want %s", outline(got), err, want)
	}
	if !strings.Contains(lines.String(), "notes.txt") || strings.Count(lines.String(), "\n") != 1 {
		t.Errorf("want one warning, about notes.txt; got %s", lines)
	}
}

// A folder may hold as many files as blocks: what is said of one holds for those after it.
func TestALackOfManyFilesIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	for slot := range 3 {
		block := fmt.Sprintf(`{"parentSlot":%d,"blockhash":%q,"transactions":[{"version":9},{"transaction":{"signatures":["%s"],"message":{"accountKeys":[%q]}}}]}`,
			slot, testKey(byte(slot+1)), ledger.Signature{byte(slot)}, testKey(1))
		writeFile(t, filepath.Join(dir, fmt.Sprintf("%c.json", 'a'+slot)), block+block)
	}
	s, lines := open(t, dir)
	got, err := run(s, nil)
	if err != nil || len(got) != 6 || strings.Count(lines.String(), "here and further on") != 3 {
		t.Errorf("got %s, err = %v, and %s", outline(got), err, lines)
	}
}

func TestContentIsToldFromItsBytes(t *testing.T) {
	content := blockLine(1, 0) + blockLine(2, 1)
	answers := "[" + nodeBlock(`"slot":1,`, 0, 1) + "," + nodeBlock(`"slot":2,`, 1, 2) + "]"
	eventFile := eventFileOf(t, events(t, write(t, "a", content))...)
	for name, packed := range map[string]string{
		"lines": content, "json": answers, "gzip": gzipped(t, content), "zstd": zstded(t, content),
		"event file": eventFile, "event file, zstd": zstded(t, eventFile),
		"two gzip members": gzipped(t, blockLine(1, 0)) + gzipped(t, blockLine(2, 1)),
		"two zstd frames":  zstded(t, blockLine(1, 0)) + zstded(t, blockLine(2, 1)),
	} {
		s, _ := open(t, write(t, "a.json", packed)+",-")
		s.stdin = strings.NewReader(packed)
		if got, err := run(s, nil); err != nil || outline(got) != "block 1, block 2, block 1, block 2" {
			t.Errorf("%s: got %s, err = %v", name, outline(got), err)
		}
	}
}

// Events of a pipe are emitted while its writer is still there, and waiting for more ends
// with the context.
func TestRunLeavesAWaitingPipeWhenItsContextEnds(t *testing.T) {
	r, w := io.Pipe()
	s, _ := open(t, "-")
	s.stdin = r
	ctx, cancel := context.WithCancel(context.Background())
	go func() { fmt.Fprint(w, blockLine(1, 0)) }()
	err := s.Run(ctx, nil, func(_ context.Context, e ledger.Event) error {
		cancel()
		return nil
	})
	if err != context.Canceled {
		t.Errorf("err = %v, want %v", err, context.Canceled)
	}
	w.Close() // lets the reading goroutine go
}

func TestNamedPipesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skipf("no named pipes here: %v", err)
	}
	written := make(chan error)
	go func() { written <- os.WriteFile(path, []byte(blockLine(1, 0)+blockLine(2, 1)), 0) }()
	ledgertest.Equal(t, outline(events(t, path)), "block 1, block 2", "what it read")
	must(t, <-written)
}

func TestRunEndsAtOnceWithItsContextOrAnErrorOfEmit(t *testing.T) {
	refused := errors.New("refused")
	for _, content := range []string{
		blockLine(1, 0) + blockLine(2, 1),
		"[" + nodeBlock(`"slot":1,`, 0, 1) + "," + nodeBlock(`"slot":2,`, 1, 2) + "]",
		"[" + strings.Repeat(fmt.Sprintf(`{"pubkey":%q,"lamports":1},`, testKey(1)), 5000) + "null]",
	} {
		for _, want := range []error{context.Canceled, refused} {
			s, _ := open(t, write(t, "a", content))
			ctx, cancel := context.WithCancel(t.Context())
			n := 0
			err := s.Run(ctx, nil, func(context.Context, ledger.Event) error {
				n++
				if want == refused {
					return refused
				}
				cancel()
				return nil
			})
			if err != want || n != 1 {
				t.Errorf("err = %v after %d events, want %v after 1", err, n, want)
			}
			cancel()
		}
	}
}

func TestBaseStateComesInBoundedEvents(t *testing.T) {
	const n = 2*maxBaseAccounts + 1
	account := fmt.Sprintf(`{"pubkey":%q,"lamports":1,"slot":3}`, testKey(1))
	list := strings.Repeat(account+",", n-1) + account
	for name, content := range map[string]string{
		"list of accounts": "[" + list + "]",
		"event line":       `{"type":"accounts","slot":3,"accounts":[` + list + "]}",
		"response":         `{"result":{"context":{"slot":3},"value":[` + list + "]}}",
	} {
		var sizes []int
		for _, e := range events(t, write(t, "a", content)) {
			b := e.(*ledger.BaseState)
			sizes = append(sizes, len(b.Accounts))
			ledgertest.Equal(t, b.Slot, 3, "%s: the slot", name)
		}
		ledgertest.Equal(t, sizes, []int{maxBaseAccounts, maxBaseAccounts, 1}, "%s: accounts of each event", name)
	}
}

func TestRecordedFilesThatAreRefused(t *testing.T) {
	const noForm = "its content is none of the recorded forms"
	for pattern, want := range map[string]string{
		"rpc/getTransaction*/*":                              "a single transaction, which is neither a block nor an account",
		"rpc/http/Accounts/GetAccountInfoResponse.json":      "pubkey is neither in the object nor in the name of the file",
		"rpc/http/Accounts/GetMultipleAccountsResponse.json": "item 1: pubkey is neither in the object nor in the name of the file",
		"blocks/*.car":                            noForm,
		"blocks/mainnet-43200.confirmedblock.pb":  noForm,
		"accounts/mainnet-genesis.bin":            noForm,
		"accounts/account-updates.plerkle.tar.gz": noForm,
		"README.md": noForm,
	} {
		for _, path := range recorded(t, pattern) {
			s, _ := open(t, path)
			if got, err := run(s, nil); len(got) != 0 || err == nil || err.Error() != "cannot read "+path+": "+want {
				t.Errorf("%d events, err = %v, want none and %q", len(got), err, want)
			}
		}
	}
}

// All that was read counts as it lies on the disk, and so does a file that is passed over.
func TestProgressEndsAtTheSizeOfAllFiles(t *testing.T) {
	packed, other := gzipped(t, blockLine(1, 0)), "no recorded form"
	folder := filepath.Dir(write(t, "a.gz", packed))
	writeFile(t, filepath.Join(folder, "b.txt"), other)
	s, _ := open(t, folder)
	_, err := run(s, nil)
	if read, size := s.Progress(); err != nil || read != size || size != int64(len(packed)+len(other)) {
		t.Errorf("read %d of %d bytes, want all of %d; %v", read, size, len(packed)+len(other), err)
	}
	s, _ = open(t, "-")
	_, size := s.Progress()
	ledgertest.Equal(t, size, 0, "the size of standard input")
}
