package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/engine/datadir"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/wal"
)

// TestALogThatWasCutIsRefused kills a node and cuts its newest segment between two commits, below what the node knew to
// be durable: neither a start nor log verify takes what is left for a whole log.
func TestALogThatWasCutIsRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	v := launch(t, "--data-dir", data, "--source", "sim:seed=1,accounts=100,slot_time=20ms").ready()
	mark := func() []byte {
		content, err := os.ReadFile(filepath.Join(datadir.LogDir(data), "newest"))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	began := mark()
	v.until("the mark moves while blocks come", func() bool { return !bytes.Equal(mark(), began) })
	v.kill()
	var cuts []int64 // where commits of the newest segment begin
	segment := uint64(0)
	end, err := wal.ReplayBeside(t.Context(), vfs.Disk{}, datadir.LogDir(data), 0, func(commit []wal.Entry) error {
		if commit[0].Segment != segment {
			segment, cuts = commit[0].Segment, nil
		}
		cuts = append(cuts, commit[0].Offset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(datadir.LogDir(data), "*.wal"))
	if err != nil || len(segments) == 0 || len(cuts) < 10 {
		t.Fatalf("segments %q, %d commits, %v: %v", segments, len(cuts), end, err)
	}
	newest := segments[len(segments)-1]
	if err := os.Truncate(newest, cuts[5]); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := tool(t, "log", "verify", "--data-dir", data); code != exitFailure || !strings.Contains(errs, "records are missing: the log ends here") {
		t.Errorf("log verify: exit %d, %s%s", code, out, errs)
	}
	again := launch(t, "--data-dir", data, "--source", "none")
	if code := again.gone(patience); code != exitFailure || !strings.Contains(again.errs.String(), "records are missing: the log ends here, but the log was durable up to byte") {
		t.Errorf("a start: exit %d, %s", code, again.errs)
	}
}
