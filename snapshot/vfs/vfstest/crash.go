package vfstest

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
	m.mu.Lock()
	defer m.mu.Unlock()
	names := m.durable.translated(func(n *node) *node { return n })
	survives := coin(share, seed, 0)
	kept := make([]bool, len(m.unsynced))
	for i := range kept {
		kept[i] = survives()
	}
	complete(m.unsynced, kept)
	for i, c := range m.unsynced {
		if kept[i] {
			names.apply(c)
		}
	}
	copied := &Memory{lastID: m.lastID, capacity: m.capacity}
	copied.names = names.translated(func(n *node) *node {
		survivor := newNode(n.id, n.survive(share, seed))
		survivor.named = true
		copied.taken += survivor.live.taken
		return survivor
	})
	copied.durable = copied.names.translated(func(n *node) *node { return n })
	return copied
}

// Clone returns a copy of the disk as it is, with what is not synced still not synced. It shares
// the bytes until either changes them. On the copy nothing is open or locked.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	copied := &Memory{lastID: m.lastID, capacity: m.capacity}
	nodes := map[*node]*node{}
	same := func(n *node) *node {
		if nodes[n] == nil {
			nodes[n] = n.clone()
			if n.named {
				copied.taken += n.live.taken
			}
		}
		return nodes[n]
	}
	copied.names = m.names.translated(same)
	copied.durable = m.durable.translated(same)
	for _, c := range m.unsynced {
		if c.node != nil {
			c.node = same(c.node)
		}
		copied.unsynced = append(copied.unsynced, c)
	}
	return copied
}
