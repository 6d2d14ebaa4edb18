package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"ledgerd/engine/ledger"
	"ledgerd/snapshot/vfs"
)

// survey is what is known of a log from its headers.
type survey struct {
	segments []segment // oldest first, those before the first damaged header
	newest   newest
	damage   error // the first damaged or missing header, after all segments
}

// surveyLog reads all headers and compares them with each other and with newest. A header that is known does not change, but
// the last segment may grow.
func surveyLog(disk vfs.FS, dir string, known []segment) (*survey, error) {
	indexes, _, err := list(disk, dir)
	if err != nil {
		return nil, err
	}
	s := new(survey)
	var newestErr error
	s.newest, newestErr = readNewest(disk, dir)
	if len(indexes) == 0 && errors.Is(newestErr, fs.ErrNotExist) {
		return s, nil
	}
	for i, index := range indexes {
		if i > 0 && index != indexes[i-1]+1 {
			s.damage = &CorruptError{Segment: segmentName(dir, indexes[i-1]+1), Reason: "the segment is missing"}
			break
		}
		n := slices.IndexFunc(known, func(g segment) bool { return g.index == index })
		if n >= 0 && n < len(known)-1 {
			s.segments = append(s.segments, known[n])
			continue
		}
		if s.damage = s.add(disk, segmentName(dir, index), index); s.damage != nil {
			break
		}
	}
	if s.damage == nil {
		s.damage = s.checkNewest(dir, newestErr)
	}
	// Only damage has a place among the records: it is reported after the records before it are read.
	if s.damage != nil && !errors.Is(s.damage, ErrCorrupt) {
		return nil, s.damage
	}
	return s, nil
}

// add reads the header of the next segment and compares it with the one before.
func (s *survey) add(disk vfs.FS, name string, index uint64) error {
	h, size, err := readHeader(disk, name)
	if errors.Is(err, ErrTorn) || errors.Is(err, ErrCorrupt) {
		return &CorruptError{Segment: name, Reason: reasonOf(err)}
	}
	if err != nil {
		return err
	}
	reason := ""
	switch {
	case h.index != index:
		reason = fmt.Sprintf("its header says that it is segment %d", h.index)
	case h.position%8 != 0:
		reason = "its header contradicts itself"
	}
	if n := len(s.segments); n > 0 && reason == "" {
		p := &s.segments[n-1]
		if h.position < p.position+headerBytes || h.position > p.position+Position(p.size) || h.first < p.first {
			reason = fmt.Sprintf("it does not follow segment %d", p.index)
		}
	}
	if reason != "" {
		return &CorruptError{Segment: name, Reason: reason}
	}
	s.segments = append(s.segments, segment{header: h, name: name, size: size})
	return nil
}

// checkNewest returns an error if the newest segments are missing; err is the error of reading the
// file newest. Without that file there may be only the first segment of all: the crash came before
// the file was made. Then no record was ever written, and the scan refuses one.
func (s *survey) checkNewest(dir string, err error) error {
	n := len(s.segments)
	switch {
	case errors.Is(err, fs.ErrNotExist) && n == 1 && s.segments[0].index == 1:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return &CorruptError{Segment: filepath.Join(dir, newestName), Reason: "the file is missing beside segments"}
	case err != nil:
		return err
	case n == 0 || s.segments[n-1].index < s.newest.index:
		return &CorruptError{Segment: segmentName(dir, s.newest.index), Reason: "the newest segment is missing"}
	}
	return nil
}

// startAt returns the index of the segment that holds, or would hold, record from.
func (s *survey) startAt(from ledger.Version) (int, error) {
	if len(s.segments) == 0 {
		return 0, nil
	}
	if oldest := s.segments[0].first; from > 0 && from < oldest {
		return 0, fmt.Errorf("%w: record %d was asked for, the oldest is %d", ErrMissing, from, oldest)
	}
	start := 0
	for start+1 < len(s.segments) && s.segments[start+1].first <= from {
		start++
	}
	return start, nil
}

// bytes returns the size of the segments from start on.
func (s *survey) bytes(start int) (total int64) {
	for i := start; i < len(s.segments); i++ {
		total += s.segments[i].size
	}
	return total
}
