package vfstest

// unlimitedFreeBytes is what a Memory without a capacity says is free.
const unlimitedFreeBytes = 1 << 40

// FreeBytes implements vfs.FS.
func (m *Memory) FreeBytes(dir string) (uint64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.directoryLocked("statfs", dir); err != nil {
		return 0, err
	}
	return uint64(m.freeLocked()) * pageBytes, nil
}

// freeLocked returns how many pages there is space for.
func (m *Memory) freeLocked() int {
	if m.capacity == 0 {
		return unlimitedFreeBytes / pageBytes
	}
	return max(0, int(m.capacity/pageBytes)-m.taken)
}

// SetCapacity limits the disk to so many bytes, of which files take whole pages of 4 KiB.
// What it holds already stays, even if that is more. 0 is without limit, as at first.
func (m *Memory) SetCapacity(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = n
}

// UsedBytes returns how much space the files take.
func (m *Memory) UsedBytes() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return int64(m.taken) * pageBytes
}

// releaseLocked gives the space of a node back that nobody can reach any more.
func (m *Memory) releaseLocked(n *node) {
	if !n.named && n.open == 0 {
		m.taken -= n.live.taken
	}
}
