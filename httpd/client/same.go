package client

// sameBlocks is how many blocks with one and the same number are kept at least: more than are undone at once. Where no account changes the
// number stays for days, and all blocks have it.
const sameBlocks = 1024

// same are the frames that carried one number, and may come again after a resume: those of the newest sameBlocks blocks, and of no more
// than twice as many. Of those before only is kept up to which slot they were.
type same struct {
	restoring    bool                // since a resume, until a frame has a newer number
	newer, older map[uint64]struct{} // hashes of frames
	blocks       int                 // ends of blocks in newer
	next         uint64              // the slot after all of them
	middle, from uint64              // the slots from which on frames are in newer and in older
}

// has reports whether a frame was added. Each below what is kept was, as nothing so old is undone.
func (s *same) has(f *frame, hash uint64) bool {
	_, newer := s.newer[hash]
	_, older := s.older[hash]
	return newer || older || max(f.Slot, f.ToSlot) < s.from
}

// add adds a frame, unless it was told before.
func (s *same) add(f *frame, hash uint64) (added bool) {
	if s.restoring && s.has(f, hash) {
		return false
	}
	if s.newer == nil {
		s.newer = make(map[uint64]struct{})
	}
	s.newer[hash] = struct{}{}
	if f.Type == "slot_end" {
		s.end(f.Slot)
	}
	return true
}

// end notes the end of a block.
func (s *same) end(slot uint64) {
	s.next = max(s.next, slot+1)
	if s.blocks++; s.blocks == sameBlocks {
		*s = same{restoring: s.restoring, older: s.newer, next: s.next, middle: s.next, from: s.middle}
	}
}
