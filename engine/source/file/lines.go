package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/nodejson"
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
	data    *nodejson.DataDecoder
}

// run reads to the end. Blank lines are fine. An error names the line, counted from 1.
func (l *lineReader) run(ctx context.Context, r *bufio.Reader) error {
	var line []byte
	var end error
	return l.out.putEach(ctx, "line", l.skipped+1, func() (ledger.Event, error) {
		if end != nil {
			return nil, end
		}
		if line, end = readLine(r, line[:0]); end != nil && end != io.EOF || len(bytes.TrimSpace(line)) == 0 {
			return nil, end
		}
		return decodeLine(line, l.data)
	})
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
