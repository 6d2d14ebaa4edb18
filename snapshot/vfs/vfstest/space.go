package vfstest

// unlimitedFreeBytes is what a Memory without a capacity says is free.
const unlimitedFreeBytes = 1 << 40

// FreeBytes implements vfs.FS.
func (m *Memory) FreeBytes(dir string) (free uint64, err error) {
	err = m.do(Call{Kind: KindFreeBytes, Name: dir}, func() error {
		free = uint64(m.freeLocked()) * pageBytes
		_, err := m.lookLocked(dir, true)
		return err
	}, nil)
	return free, err
}

// SetCapacity limits the disk to so many bytes, of which files take whole pages of 4 KiB.
// What it holds already stays, even if that is more. 0 is without limit, as at first.
func (m *Memory) SetCapacity(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = n
}

// UsedBytes returns how much space the files take that have a name.
func (m *Memory) UsedBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(m.takenLocked()) * pageBytes
}

func (m *Memory) takenLocked() (pages int) {
	m.root.files("", func(_ string, file *node) { pages += file.live.taken() })
	return pages
}

// freeLocked returns how many pages there is space for.
func (m *Memory) freeLocked() int {
	if m.capacity == 0 {
		return unlimitedFreeBytes / pageBytes
	}
	return max(0, int(m.capacity/pageBytes)-m.takenLocked())
}

// fittingLocked returns how much of a write to a file there is space for.
func (m *Memory) fittingLocked(file *node, length int, off int64) int {
	space := int64(file.live.taken()+m.freeLocked()) * pageBytes
	return int(max(0, min(int64(length), space-off)))
}
