package vfstest

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

// faultyDisk returns a disk with a file of ten bytes, which is open. The plan counts from then on.
func faultyDisk(t *testing.T, plan Plan) (*Memory, *Faulty, vfs.File) {
	t.Helper()
	m := NewMemory()
	must(t, m.MkdirAll("dir"))
	f := NewFaulty(m, Plan{})
	file := written(t, f, "dir/file", "0123456789")
	f.Arm(plan)
	return m, f, file
}

// TestNothingReachesTheDiskAfterACrash, whatever is called, and another plan ends no crash.
func TestNothingReachesTheDiskAfterACrash(t *testing.T) {
	m := NewMemory()
	f := NewFaulty(m, Plan{})
	d := newDriver(f, "/", 0)
	for range 500 { // now files are open, and there is something to remove
		d.do()
	}
	before := m.Clone()
	for _, plan := range []Plan{{Call: 1, Fault: Crash}, {}} {
		f.Arm(plan)
		for range 500 {
			d.do()
		}
		f.Heal()
		if err := f.SyncDir("."); !errors.Is(err, ErrCrashed) || f.Calls() != plan.Call || len(f.Trace()) != plan.Call {
			t.Errorf("after the crash: %v, %d calls, %v", err, f.Calls(), f.Trace())
		}
	}
	both := func(m *Memory) string { return holds(t, m, ".") + ", durable " + holds(t, m.Crash(0, 1), ".") }
	ledgertest.Equal(t, both(m), both(before), "what the disk holds, as before the crash,")
}

// TestAFaultStrikesHalfOfAShortWrite, and what has the name in question: of a rename either of two.
func TestAFaultStrikesHalfOfAShortWrite(t *testing.T) {
	m, _, file := faultyDisk(t, Plan{Call: 1, Fault: Short})
	n, err := file.WriteAt([]byte("abcdefg"), 10)
	if got := contentOf(t, m, "dir/file"); n != 3 || !errors.Is(err, syscall.ENOSPC) || got != "0123456789abc" {
		t.Errorf("short write = %d, %v, and the file holds %q", n, err, got)
	}
	for name, want := range map[string]error{"fil": syscall.EIO, "the-to": syscall.EIO, "none": nil} {
		_, f, _ := faultyDisk(t, Plan{Call: 1, Name: name, Kinds: KindRename})
		ledgertest.ErrorIs(t, f.Rename("dir/file", "the-to"), want, "Rename with a fault for %q", name)
	}
}

// TestSyncAfterAFailedOneSavesNothing is the trap that Linux sets: after a failed fsync the next
// one succeeds, and what was written before is lost all the same.
func TestSyncAfterAFailedOneSavesNothing(t *testing.T) {
	for lose, want := range map[bool]string{false: "aaaabbbbcccc", true: "aaaa\x00\x00\x00\x00cccc"} {
		m := NewMemory()
		f := NewFaulty(m, Plan{Call: 2, Kinds: KindSync, LoseOnSyncFailure: lose})
		file := written(t, f, "file", "aaaa")
		var errs []error
		for i, text := range []string{"bbbb", "cccc", "d"} {
			errs = append(errs, file.Sync(), f.SyncDir("."))
			_, err := file.WriteAt([]byte(text), int64(4*i+4))
			must(t, err)
		}
		if !errors.Is(errs[2], syscall.EIO) || errors.Join(slices.Delete(errs, 2, 3)...) != nil {
			t.Fatalf("Sync: %v, want the fault in the second", errs)
		}
		left := map[string]string{
			"as it reads": contentOf(t, m, "file"), "Crash(0)": contentOf(t, m.Crash(0, 1), "file"), "Crash(1)": contentOf(t, m.Crash(1, 1), "file"),
		}
		wants := map[string]string{"as it reads": "aaaabbbbccccd", "Crash(0)": want, "Crash(1)": want + "d"}
		ledgertest.Equal(t, left, wants, "lose %v: the file", lose)
	}
}
