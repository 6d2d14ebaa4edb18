package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"ledgerd/engine/codec"
	"ledgerd/engine/source/file"
)

// writeLines writes the events of an event file as event lines.
func writeLines(path, eventFile string) (err error) {
	events, err := os.Open(eventFile)
	if err != nil {
		return err
	}
	defer events.Close()
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	reader, err := codec.NewEventReader(events)
	if err != nil {
		return err
	}
	lines := bufio.NewWriterSize(out, fileBuffer)
	var line []byte
	for {
		e, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return errors.Join(lines.Flush(), out.Sync()) // Flush tells of any error of a write
		}
		if err != nil {
			return fmt.Errorf("cannot write a ledger to %s: %w", path, err)
		}
		line = file.AppendEventLine(line[:0], e)
		_, _ = lines.Write(line)
	}
}
