package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"ledgerd/engine/ledger/ledgertest"
)

// Backups of a node that ingests, takes snapshots and prunes meanwhile are that node as it stood: one that goes on from a
// backup, or from an archive of one, ends as one that was never stopped, and gives the same answers. The commands that read its log and its
// snapshots in their place do not take for damage what it writes, begins and prunes meanwhile.
func TestBackupUnderLoadIsTheNodeAsItStood(t *testing.T) {
	t.Parallel()
	folder, straight := t.TempDir(), t.TempDir()
	// At this pace no block leaves memory for minutes: what does is in the history of a node, and in no backup.
	const source = "sim:seed=3,accounts=300,slot_time=20ms,tps=1000,fork_rate=0.2,finality=4"
	dir := t.TempDir()
	a := start(t, "--data-dir", dir, "--source", source, "--snapshot-interval", "100ms", "--log-segment-bytes", "64KiB")
	a.errs.await(t, "(?s:msg=snapshot .*msg=snapshot .*msg=snapshot )") // the log was pruned
	names := []string{"1", "2", "3.tar.zst"}
	for _, name := range names {
		out, errs, code := tool(t, "backup", "--quiet", "--url", a.ops+"/", "--output", filepath.Join(folder, name)+"/")
		if code != exitOK || !strings.HasSuffix(out, "\nok\nbacked up to "+filepath.Join(folder, name)+"\n") || errs != "" {
			t.Fatalf("backup %s: exit code %d, said %s%s", name, code, out, errs)
		}
	}
	toolSays(t, exitUsage, "exists", "backup", "--url", a.ops, "--output", filepath.Join(folder, "1"))
	newest := decode[struct{ Slot int }](dial(t, a), dial(t, a).get("/blocks/latest")).Slot
	for range 4 {
		verified(t, dir)
		for _, command := range [][]string{{"log", "dump"}, {"snapshot", "list"}} {
			_, errs, code := tool(t, append(command, "--data-dir", dir)...)
			if code != exitOK && (command[0] != "log" || !strings.Contains(errs, "records missing")) {
				t.Errorf("%s beside the node: exit code %d, said %s", command, code, errs)
			}
		}
	}
	a.stop()

	packed, err := os.Open(filepath.Join(folder, "3.tar.zst"))
	must(t, err)
	defer packed.Close()
	unpacked, err := zstd.NewReader(packed)
	must(t, err)
	defer unpacked.Close()
	restored := filepath.Join(folder, "3")
	must(t, os.Mkdir(restored, 0o700))
	untar := exec.Command("tar", "-xf", "-", "-C", restored) // as a person does it, but for --zstd
	untar.Stdin = unpacked
	if said, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, said)
	}
	if left, _ := filepath.Glob(folder + "/*"); len(left) != len(names)+1 {
		t.Errorf("there are %q, want the backups and what was unpacked", left)
	}
	wantEnding, want := "", ""
	for _, data := range []string{straight, folder + "/1", folder + "/2", restored} {
		b := start(t, "--data-dir", data, "--source", fmt.Sprintf("%s,slots=%d", source, newest+50))
		ending, got := b.ending(t), everything(dial(t, b))
		b.stop()
		if data == straight {
			wantEnding, want = ending, got
		}
		if ending != wantEnding || got != want {
			t.Errorf("%s: ended at %s, want %s: %s", data, ending, wantEnding, firstDifference(got, want))
		}
	}
}

// A packing that is stopped writes nothing.
func TestPackingIsStopped(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	var done meter
	if err := pack(stopped, consoleFolder, filepath.Join(t.TempDir(), "b"), &done); !errors.Is(err, context.Canceled) || done.done.Load() > 0 {
		t.Errorf("a packing that is stopped wrote %d bytes, %v", done.done.Load(), err)
	}
}

// Of nodes that are never at one slot at a time the states at one slot are compared, and nothing else, however often they send theirs to somebody else.
func TestDiffComparesOneSlot(t *testing.T) {
	t.Parallel()
	for behind := range uint64(4) {
		var asked atomic.Uint64
		asked.Store(100)
		node := func(slot func() uint64, last string) string {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1)%3 == 0 && r.URL.Query().Has("accounts") { // somebody else is sent all accounts
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				at := slot()
				fmt.Fprintf(w, `{"slot":%d,"blockhash":"b%[1]d","state_hash":"%[1]d %[2]s"}`+"\n", at, last)
				if r.URL.Query().Has("accounts") {
					fmt.Fprintf(w, `{"accounts":[{"pubkey":"11111111111111111111111111111111","lamports":%d}]}`+"\n", at)
					fmt.Fprintf(w, `{"accounts":[{"pubkey":"%s","lamports":1}]}`+"\n", last)
				}
			}))
			t.Cleanup(s.Close)
			return s.URL
		}
		one, two := toolKey("one").String(), toolKey("two").String()
		ahead := node(func() uint64 { return asked.Load() / 5 }, one)
		late := node(func() uint64 { return asked.Load()/5 - behind }, two)
		equal := node(func() uint64 { return asked.Load()/5 - behind }, one)
		for _, pair := range [][]string{{ahead, late}, {late, ahead}} {
			out := toolSays(t, exitFailure, "the nodes differ\n", "diff", pair[0], pair[1])
			ledgertest.Equal(t, strings.Count(out, `","lamports":1}`)+strings.Count(out, "holds nothing of it"), 2, "%d slots behind, and in %s", behind, out)
		}
		if out := toolSays(t, exitOK, "", "diff", equal, ahead); !strings.HasPrefix(out, "equal at slot ") {
			t.Errorf("it prints %s", out)
		}
	}
}
