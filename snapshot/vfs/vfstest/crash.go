package vfstest

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// Crash returns a copy of the disk as after a power cut: everything that was synced, and of
// everything else a share, from 0 (nothing) to 1 (all), that the seed picks. It picks
//   - each sector of 512 bytes for itself, so that a write can survive in part and a later one
//     without an earlier one; bytes that are lost within the size of a file read as zeros,
//   - the size of each file for itself,
//   - each change of a name for itself, except that a rename is done or not done, and that the
//     changes of one name, or of one file's names, survive in order.
//
// The same calls, share and seed give the same copy. The disk and its open files go on as if
// nothing had happened. On the copy nothing is open or locked, and everything is synced.
func (m *Memory) Crash(share float64, seed uint64) *Memory {
	copied := m.Clone()
	survives := coin(share, seed, 0)
	copied.keepLocked(func(naming) bool { return survives() })
	copied.unsynced = nil
	copied.root.crash(share, seed)
	return copied
}

// Clone returns a copy of the disk as it is, with what is not synced still not synced. It shares
// the bytes until either changes them. On the copy nothing is open or locked.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := map[*node]*node{nil: nil}
	var copyOf func(n *node) *node
	copyNames := func(names map[string]*node) map[string]*node {
		if names == nil {
			return nil
		}
		copied := make(map[string]*node, len(names))
		for name, n := range names {
			copied[name] = copyOf(n)
		}
		return copied
	}
	copyOf = func(n *node) *node {
		if _, done := copies[n]; !done {
			c := &node{id: n.id, live: n.live.share(), durable: n.durable.share(), unsynced: slices.Clone(n.unsynced), lost: n.lost}
			copies[n] = c
			c.names, c.kept = copyNames(n.names), copyNames(n.kept)
		}
		return copies[n]
	}
	copied := &Memory{state: &state{root: copyOf(m.root), lastID: m.lastID, capacity: m.capacity}}
	for _, c := range m.unsynced {
		c.node, c.from.dir, c.to.dir = copyOf(c.node), copyOf(c.from.dir), copyOf(c.to.dir)
		copied.unsynced = append(copied.unsynced, c)
	}
	return copied
}

// EveryCall runs a test for each plan, with the fault at every n-th call as Calls says, on a copy of a disk, until there is no such call.
func EveryCall(t *testing.T, n int, begun *Memory, plans map[string]Plan, test func(*testing.T, *Memory, *Faulty, Plan)) {
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for plan.Call = range Calls(n) {
				memory := begun.Clone()
				disk := NewFaulty(memory, plan)
				if test(t, memory, disk, plan); !disk.Hit() || t.Failed() {
					return
				}
			}
		})
	}
}

// Calls are the numbers of the calls at which a test tries a fault, without end: every n-th from a random one on, and fewer or all as
// Stride says.
func Calls(n int) iter.Seq[int] {
	step := Stride(n)
	return func(yield func(int) bool) {
		for call := 1 + rand.IntN(step); yield(call); call += step {
		}
	}
}

// Stride is the step of a test that tries a fault at every call: such tests try a sample, a smaller one in a short run.
// With LEDGERD_CRASH_ALL set they try all, as make crash-all does.
func Stride(n int) int {
	return ledgertest.Sample(1, n, 2*n)
}
