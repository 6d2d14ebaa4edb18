package snapshot

import (
	"fmt"
	"path"
	"slices"

	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/snapshot/vfs"
)

// archiveDoes does what a line says of an archive, and returns what came of it.
func (s *stage) archiveDoes(words []string) string {
	switch words[0] {
	case "archive":
		bound, names := int64(1<<30), words[1:]
		if slices.Contains(words, "bound") {
			bound, names = int64(s.number(words[2])), words[3:]
		}
		var err error
		s.archive, err = OpenArchive(s.disk, archiveDir, bound, func() []string { return names }, quiet)
		must(s.t, err)
		told, bytes := s.archive.Stats().Bytes, s.runBytes()
		ledgertest.Holds(s.t, told <= bytes, "%d bytes are told of %d in files", told, bytes)
		return s.runs()
	case "add":
		room, ranges := int64(1<<40), words[1:]
		if words[1] == "room" {
			room, ranges = int64(s.number(words[2])), words[3:]
		}
		for _, text := range ranges {
			blocks := s.blocks(text)
			must(s.t, s.archive.Add(s.t.Context(), blocks, room, Pace{}))
			s.added = append(s.added, blocks...)
		}
		return s.runs()
	case "shrink":
		told, bytes := s.archive.Stats().Bytes, s.runBytes()
		dropped := s.archive.Shrink()
		ledgertest.Equal(s.t, []int64{dropped, told - s.archive.Stats().Bytes}, []int64{bytes - s.runBytes(), dropped}, "bytes that were dropped, and that are told less")
		return s.runs()
	case "whole":
		return fmt.Sprintf("from slot %d on", s.archive.From(s.number(words[1])))
	case "read":
		return told(archived(s.archive, s.added, len(words) > 1)) + "; " + s.runs()
	case "keep":
		s.kept = s.disk.Clone()
	case "back":
		names, err := s.kept.List(archiveDir)
		must(s.t, err)
		for _, name := range names {
			b, err := s.kept.ReadFile(path.Join(archiveDir, name))
			must(s.t, err)
			must(s.t, s.disk.WriteFile(path.Join(archiveDir, name), b))
		}
	default:
		s.t.Fatalf("%q is nothing that a scene does", words)
	}
	return ""
}

// runBytes returns the bytes of all files of the archive.
func (s *stage) runBytes() (bytes int64) {
	names, err := s.disk.List(archiveDir)
	must(s.t, err)
	for _, name := range names {
		size, err := vfs.Size(s.disk, path.Join(archiveDir, name))
		must(s.t, err)
		bytes += size
	}
	return bytes
}

// runs tells what an archive holds, and its files.
func (s *stage) runs() string {
	names, err := s.disk.List(archiveDir)
	must(s.t, err)
	stats := s.archive.Stats()
	return fmt.Sprintf("%d runs, whole from slot %d on, damaged %s, of the files %s", stats.Runs, s.archive.From(s.archive.Next()), brief(stats.Damaged), brief(names))
}
