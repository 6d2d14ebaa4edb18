package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
	"ledgerd/snapshot/vfs/vfstest"
)

// stage is the disk of a scene, and the process that has it.
type stage struct {
	t    *testing.T
	disk *vfstest.Faulty
	*Store
	written map[ledger.Slot]Written
	lacking bool // a history file was harmed
	archive *Archive
	added   []HeldBlock     // to the archive
	kept    *vfstest.Memory // the disk as it was
}

// F8, F51: a scene in testdata/scenes has a line for each thing that is done to a directory of snapshots or to an archive, and under it what came of that.
//
//	write 30 [floor 26] [blocks 22-24 28-30]    the state at slot 30, with all blocks from the floor on or those given
//	open 30, salvage 30                         the snapshot at a slot
//	prune 2                                     twice: the second time there is nothing left to do
//	restart                                     another process: it has read none of the files yet
//	archive [bound 100] ours root               opens the archive of a ledger that is known by these names
//	add [room 100] 0-8 10-18                    a run for each of them; 20-30/24 is without the block before that at slot 24
//	shrink                                      drops what goes first, and tells what that freed
//	whole 20                                    from which slot on history is, where memory begins with another
//	read, read damaged                          all that was added; of a damaged one some may be missing
//	harm 36 FILE                                other bytes from there on; a FILE is a state, as in "30", a history file, as in "30 history 0", or a run, as in "run 0-8"
//	bad FILE, good                              a sector of it cannot be read; all can be read again
//	newer FILE                                  a program of a later format wrote it
//	gone FILE                                   somebody removed it
//	empty                                       somebody removed all files of the archive
//	swap FILE with FILE                         they have each other's bytes
//	keep, back                                  the files as they were are beside those that took their place
//	put NAME...                                 files that are in the directory
func TestScenes(t *testing.T) {
	ledgertest.Scenes(t, "testdata/scenes/*.txt", "# ", *update, func(t *testing.T, scene string) string {
		s := &stage{t: t, disk: vfstest.NewFaulty(vfstest.NewMemory(), vfstest.Plan{}), written: map[ledger.Slot]Written{}}
		title, lines, _ := strings.Cut(scene, "\n")
		text := "# " + title + "\n"
		for line := range strings.SplitSeq(lines, "\n") {
			if strings.HasPrefix(line, "\t") || line == "" {
				continue
			}
			if s.Store == nil && !strings.HasPrefix(line, "put ") {
				s.Store = openTestStore(t, s.disk)
			}
			text += line + "\n"
			if outcome := s.do(strings.Fields(line)); outcome != "" {
				text += "\t" + strings.TrimSpace(outcome) + "\n"
			}
		}
		return text + "\n"
	})
}

// number reads a number.
func (s *stage) number(text string) (n ledger.Slot) {
	_, err := fmt.Sscan(text, &n)
	must(s.t, err)
	return n
}

// blocks returns the blocks of a range.
func (s *stage) blocks(text string) []HeldBlock {
	text, gap, hasGap := strings.Cut(text, "/")
	first, last, _ := strings.Cut(text, "-")
	blocks := testBlocks(s.number(first), s.number(last))
	if hasGap {
		blocks[(s.number(gap)-s.number(first))/2].Block.ParentSlot++
	}
	return blocks
}

// path returns the path of a file: of a run, of a state, or of a history file that it names.
func (s *stage) path(words []string) string {
	s.lacking = s.lacking || slices.Contains(words, "history")
	if words[0] == "run" {
		names, err := s.disk.List(archiveDir)
		must(s.t, err)
		at := slices.IndexFunc(names, func(name string) bool { return brief([]string{name}) == "["+strings.Join(words, " ")+"]" })
		return path.Join(archiveDir, names[at])
	}
	w := s.written[s.number(words[0])]
	if len(words) > 1 {
		return path.Join(testDir, w.Meta.History[s.number(words[2])].Name)
	}
	return path.Join(testDir, w.Name)
}

// do does what a line says, and returns what came of it.
func (s *stage) do(words []string) string {
	switch words[0] {
	case "write":
		return s.write(s.number(words[1]), words[2:])
	case "open", "salvage":
		snap, err := s.open(s.written[s.number(words[1])].Info, words[0] == "salvage")
		if err == nil && words[0] == "open" {
			_, err = load(snap, 2)
		}
		return told(err) + "; lost " + brief(s.Lost())
	case "prune":
		return s.prune(int(s.number(words[1])))
	case "restart":
		s.Store = openTestStore(s.t, s.disk)
	case "harm":
		must(s.t, s.disk.Overwrite(s.path(words[2:]), int64(s.number(words[1])), []byte{9, 9, 9}))
	case "bad":
		s.disk.Arm(vfstest.Plan{Call: 1, Lasting: true, Err: syscall.EIO, Kinds: vfstest.KindReadAt, Name: s.path(words[1:])})
	case "good":
		s.disk.Heal()
	case "gone":
		must(s.t, s.disk.Remove(s.path(words[1:])))
	case "empty":
		must(s.t, vfs.Clear(s.disk, archiveDir))
	case "swap":
		with := slices.Index(words, "with")
		s.change(words[1:with], s.change(words[with+1:], s.content(words[1:with])))
	case "newer":
		b := s.content(words[1:])
		b[8] = 7 // the format version
		copy(b, resealHeader(b[:headerBytes]))
		s.change(words[1:], b)
	case "put":
		for _, name := range words[1:] {
			must(s.t, s.disk.WriteFile(path.Join(testDir, name), []byte("something")))
		}
		infos, err := ViewStore(s.disk, testDir, quiet).List()
		return fmt.Sprintf("%s; %d files are %d snapshots", told(err), len(s.disk.Paths()), len(infos))
	default:
		return s.archiveDoes(words)
	}
	return ""
}

// content returns the bytes of a file.
func (s *stage) content(file []string) []byte {
	b, err := s.disk.ReadFile(s.path(file))
	must(s.t, err)
	return b
}

// change gives a file other bytes, and returns those it had.
func (s *stage) change(file []string, b []byte) (had []byte) {
	had = s.content(file)
	must(s.t, s.disk.WriteFile(s.path(file), b))
	return had
}

// told returns what came of something, without the names of files, which have a hash.
func told(err error) string {
	var damage *DamagedError
	var format *FormatError
	switch {
	case err == nil:
		return "good"
	case errors.As(err, &damage):
		return "damaged: " + damage.Reason
	case errors.As(err, &format):
		return fmt.Sprintf("of format version %d, and %d is the newest that is read", format.Version, format.Newest)
	case errors.Is(err, fs.ErrNotExist):
		return "missing"
	case errors.Is(err, syscall.EIO):
		return "cannot be read"
	}
	return err.Error()
}

// brief returns names of files, in brief where they are ours: they have a hash of what the compressor made.
func brief(names []string) (text string) {
	for _, name := range names {
		if first, last, ok := parseBlocksName(historyPrefix, name); ok {
			name = fmt.Sprintf("history %d-%d", first, last)
		} else if first, last, ok := parseBlocksName(runPrefix, name); ok {
			name = fmt.Sprintf("run %d-%d", first, last)
		} else if slot, _, ok := parseStateName(name); ok {
			name = fmt.Sprintf("snapshot %d", slot)
		}
		text += ", " + name
	}
	return "[" + strings.TrimPrefix(text, ", ") + "]"
}

// write writes the state at a slot, which must be read as it was written, unless history is lacking. Where it is refused it leaves nothing.
func (s *stage) write(slot ledger.Slot, words []string) string {
	floor := ledger.Slot(0)
	if len(words) > 0 && words[0] == "floor" {
		floor, words = s.number(words[1]), words[2:]
	}
	st, names := testState(slot, floor, 5, 1), []string(nil)
	blocks := st.blocks
	if len(words) > 0 {
		blocks = nil
		for _, text := range words[1:] {
			blocks = append(blocks, s.blocks(text)...)
		}
	}
	before := s.disk.Paths()
	w, err := s.Write(s.t.Context(), st.meta, st.parts(2), blocks, Pace{})
	if err != nil {
		ledgertest.Equal(s.t, s.disk.Paths(), before, "what is left after a snapshot at slot %d that was refused", slot)
		return err.Error()
	}
	s.written[slot] = w
	if !s.lacking {
		wantLoaded(s.t, w.Name, newest(s.t, s.Store), 1, st)
	}
	for _, ref := range w.Meta.History {
		names = append(names, ref.Name)
	}
	return brief(names)
}

func (s *stage) prune(keep int) string {
	var left [2]string
	for i := range left {
		oldest, err := s.Prune(s.t.Context(), keep, Pace{})
		if err != nil {
			return err.Error()
		}
		names, err := s.names()
		must(s.t, err)
		if left[i] = "none counts"; oldest != nil {
			left[i] = fmt.Sprintf("the oldest that counts is that at slot %d", oldest.Slot)
		}
		left[i] += "; left are " + brief(names)
	}
	ledgertest.Equal(s.t, left[1], left[0], "what a second pruning leaves, as the first did")
	return left[0]
}
