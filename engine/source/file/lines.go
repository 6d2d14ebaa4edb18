package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes bounds one event line, its newline included: a reader refuses a longer one.
// A line of base state stays far below it with 4096 accounts, which is also as many as a
// reader makes one event of; dividing larger base state is up to the caller.
const MaxLineBytes = 64 << 20

var errLineTooLong = errors.New("line longer than 64 MiB")

// lineReader turns event lines into events. It holds one line at a time, and its event until
// that is emitted; nothing is read ahead but what the buffer of its reader holds, so that a
// line of a pipe is emitted as soon as it is whole.
type lineReader struct {
	out     *sink
	skipped int // lines dropped in front
	decoder lineDecoder
}

// run reads to the end. Blank lines are fine. An error names the line, counted from 1.
func (l *lineReader) run(ctx context.Context, r *bufio.Reader) error {
	var buf []byte
	for number := l.skipped + 1; ; number++ {
		line, err := readLine(r, buf[:0])
		buf = line
		if err != nil && err != io.EOF {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			if err := l.put(ctx, line); err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// put emits the event of one line.
func (l *lineReader) put(ctx context.Context, line []byte) error {
	e, err := l.decoder.decodeLine(line)
	if err == nil {
		err = l.out.put(ctx, e)
	}
	return err
}

// readLine appends the bytes up to and including the next newline to dst. It returns io.EOF
// with the last line, which may have no newline, and errLineTooLong with the front of a
// line of more than MaxLineBytes.
func readLine(r *bufio.Reader, dst []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(dst)+len(part) > MaxLineBytes {
			return append(dst, part...), errLineTooLong
		}
		dst = append(dst, part...)
		if err != bufio.ErrBufferFull {
			return dst, err
		}
	}
}
