package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
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

// What a node sends is verified, and nothing is left of a backup that failed.
func TestBackupThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	a := start(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=100,slot_time=0,slots=40", "--snapshot-interval", "0")
	a.ending(t)
	_, whole := get(t, a.ops+"/backup")
	node := bytes.LastIndex(whole, []byte("node.json"))
	records := bytes.Index(whole, []byte("log/0000"))
	if node < 0 || records < 0 {
		t.Fatalf("a backup of %d bytes holds no log, or no node.json", len(whole))
	}
	damaged := bytes.Clone(whole)
	damaged[records+4096] ^= 1
	otherID := bytes.Clone(whole)
	otherID[node+bytes.Index(whole[node:], []byte(`"node_id": "`))+12] ^= 1
	for name, tt := range map[string]struct {
		status int
		body   []byte
		want   string
	}{
		"refused":          {503, []byte(`{"details":"not now"}`), "answers 503: not now"},
		"the public port":  {404, []byte(`{"details":"no such path"}`), "answers 404: no such path; the operators' listener is where --ops-listen is"},
		"paints":           {503, []byte(`{"details":"\u001b]52;c;YQ==\u0007not now"}`), "answers 503: \ufffd]52;c;YQ==\ufffdnot now"},
		"paints plainly":   {500, []byte("\x1b[2J\u009b3Jgone"), "answers 500: \ufffd[2J\ufffd3Jgone"},
		"another node":     {200, otherID, "the backup is of no use: "},
		"a script":         {200, withFile(t, whole, &tar.Header{Name: "x.sh", Typeflag: tar.TypeReg, Mode: 0o755}), `"x.sh" is no file of a data directory`},
		"the lock":         {200, withFile(t, whole, &tar.Header{Name: "LOCK", Typeflag: tar.TypeReg}), `"LOCK" is no file of a data directory`},
		"a broken log":     {200, withFile(t, whole, &tar.Header{Name: "log/0000000000000001.broken", Typeflag: tar.TypeReg}), "is no file of a data directory"},
		"a device":         {200, withFile(t, whole, &tar.Header{Name: "log/newest", Typeflag: tar.TypeFifo}), `"log/newest" is no file of a data directory`},
		"a file in a file": {200, withFile(t, whole, &tar.Header{Name: "node.json/a", Typeflag: tar.TypeReg}), "is no file of a data directory"},
		"holes":            {200, sparseFile("log/newest", 64<<20), "more than the"},
		"cut":              {200, whole[:len(whole)/2], "unexpected EOF"},
		"without its end":  {200, append(whole[:node:node], make([]byte, len(whole)-node)...), "it has no node.json"},
		"damaged":          {200, damaged, "the backup is of no use: "},
		"another name":     {200, bytes.Replace(whole, []byte("log/0000"), []byte("../00000"), 1), "cannot fetch the backup: "},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if tt.status == http.StatusOK {
				w.Header().Set("Content-Length", fmt.Sprint(max(len(whole), len(tt.body))))
			}
			w.WriteHeader(tt.status)
			_, _ = w.Write(tt.body)
		}))
		folder := t.TempDir()
		for _, output := range []string{"b", "b.tar.zst"} {
			toolSays(t, exitFailure, tt.want, "backup", "--url", server.URL, "--output", filepath.Join(folder, output))
		}
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("%s: it leaves %v", name, left)
		}
		server.Close()
	}
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // so it does not say how long it is
		_, _ = w.Write(whole)
	}))
	defer endless.Close()
	toolSays(t, exitFailure, "does not say how long", "backup", "--url", endless.URL, "--output", filepath.Join(t.TempDir(), "b"))
	toolSays(t, exitUsage, ".tar.zst", "backup", "--output", "b.zst")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	var done meter
	if err := pack(stopped, consoleFolder, filepath.Join(t.TempDir(), "b"), &done); !errors.Is(err, context.Canceled) || done.done.Load() > 0 {
		t.Errorf("a packing that is stopped wrote %d bytes, %v", done.done.Load(), err)
	}
}

// withFile returns an archive with one more empty file before all others.
func withFile(t *testing.T, archive []byte, header *tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(header))
	must(t, w.Flush())
	return append(b.Bytes(), archive...)
}

// sparseFile returns an archive of a few KiB with a file that is large, and has one byte at its end.
func sparseFile(name string, bytes int) []byte {
	records := ""
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprintf("GNU.sparse.realsize=%d", bytes)} {
		records += fmt.Sprintf("%d %s\n", len(r)+4, r) // all are of two digits
	}
	content := tarBlock(fmt.Sprintf("1\n%d\n1\n", bytes-1)) + "x"
	return []byte(tarHeader("x", 'x', len(records)) + tarBlock(records) + tarHeader(name, '0', len(content)) + tarBlock(content) + strings.Repeat("\x00", 1024))
}

// tarBlock fills the last block of 512 bytes.
func tarBlock(s string) string { return s + strings.Repeat("\x00", -len(s)&511) }

// tarHeader returns a header as the tar.Writer refuses to write it.
func tarHeader(name string, kind byte, size int) string {
	header := []byte(tarBlock(name))
	for at, field := range map[int]string{100: "0000644\x00", 108: "0000000\x00", 116: "0000000\x00", 124: fmt.Sprintf("%011o\x00", size), 136: "00000000000\x00", 148: "        ", 156: string(kind), 257: "ustar\x0000"} {
		copy(header[at:], field)
	}
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	return string(header)
}
