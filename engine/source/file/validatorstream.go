package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/yellowstone"
)

// maxMessageBytes bounds one message of a validator stream, and with it what it can make us hold.
const maxMessageBytes = 64 << 20

var errMessageCut = errors.New("the input ends in it")

// readValidatorStream plays a recorded validator stream in the order of arrival: messages of
// Yellowstone gRPC, each behind its length in 4 bytes, big endian. An error names the message,
// counted from 1.
func readValidatorStream(ctx context.Context, r io.Reader, name string, data *ledger.DataPrograms, out *sink, log *slog.Logger) error {
	assembler := yellowstone.NewAssembler(out.put)
	var message bytes.Buffer
	var update yellowstone.Update
	err := out.putEach(ctx, "message", 1, func() (ledger.Event, error) {
		err := readMessage(r, &message)
		if err == nil {
			err = yellowstone.Decoder{Data: data}.Decode(message.Bytes(), &update)
		}
		if err == nil {
			err = assembler.Take(ctx, &update)
		}
		return nil, err
	})
	if err != nil {
		return err
	}
	if n := assembler.Counts.Late; n > 0 {
		log.Warn("account writes came behind their blocks: they count as those of the blocks that build on them", "input", name, "writes", n)
	}
	if n := assembler.Unfinished(); n > 0 {
		log.Info("slots are left out of which the recording holds a part alone", "input", name, "slots", n)
	}
	return nil
}

// readMessage reads a message into a buffer that is used again, io.EOF if there is none. It takes no
// more memory than bytes come.
func readMessage(r io.Reader, message *bytes.Buffer) error {
	message.Reset()
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = errMessageCut
		}
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxMessageBytes {
		return fmt.Errorf("it is said to have %d bytes, more than %d", n, maxMessageBytes)
	}
	_, err := io.CopyN(message, r, int64(n))
	if err == io.EOF {
		err = errMessageCut
	}
	return err
}
