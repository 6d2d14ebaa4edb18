package file

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"

	"ledgerd/engine/codec"
)

// form is what a file holds.
type form uint8

const (
	unknownForm     form = iota
	jsonValues           // blocks and accounts as a node answers them
	eventLines           // our own NDJSON
	eventFile            // our own binary event file
	validatorStream      // length-framed geyser.SubscribeUpdate messages
)

var (
	errEmpty       = errors.New("it is empty")
	errUnknownForm = errors.New("its content is none of the recorded forms")
)

// form tells what the content is from its first bytes. It drops white space in front and
// else consumes nothing. Content without a byte is errEmpty: a zstd file that was cut
// between frames unpacks to nothing, without any error.
func (c *content) form() (form, error) {
	head, err := c.r.Peek(len(codec.EventFileMagic))
	if err != nil && err != io.EOF {
		return unknownForm, err
	}
	switch {
	case len(head) == 0:
		return unknownForm, errEmpty
	case bytes.HasPrefix(head, []byte(codec.EventFileMagic)):
		return eventFile, nil
	case looksLikeValidatorStream(head):
		return validatorStream, nil
	}
	first, err := c.skipSpace()
	switch {
	case err == io.EOF:
		return unknownForm, errEmpty
	case err != nil:
		return unknownForm, err
	case first == '[':
		return jsonValues, nil
	case first == '{':
		return c.objectForm()
	}
	return unknownForm, nil
}

// objectForm tells event lines from other JSON. Only event lines have a "type", and nearly
// always in front; else the first line has to be read, which is put back after it.
func (c *content) objectForm() (form, error) {
	head, _ := c.r.Peek(len(`{ "type"`))
	if inner := bytes.TrimSpace(head[1:]); bytes.HasPrefix(inner, []byte(`"type"`)) {
		return eventLines, nil
	}
	line, err := readLine(c.r, nil)
	if err != nil && err != io.EOF && err != errLineTooLong {
		return unknownForm, err
	}
	c.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(line), c.r), readAheadBytes)
	var probe struct{ Type json.RawMessage }
	if err == errLineTooLong || json.Unmarshal(line, &probe) != nil || probe.Type == nil {
		return jsonValues, nil
	}
	return eventLines, nil
}

// looksLikeValidatorStream reports whether head starts with a 4-byte big-endian length and
// the tag of a length-delimited protobuf field, all of which SubscribeUpdate has.
func looksLikeValidatorStream(head []byte) bool {
	const maxField, lengthDelimited = 15, 2
	if len(head) < 5 {
		return false
	}
	length, tag := binary.BigEndian.Uint32(head), head[4]
	return length > 0 && length <= maxMessageBytes && tag&7 == lengthDelimited && tag>>3 >= 1 && tag>>3 <= maxField
}

// skipSpace drops JSON white space and returns the byte after it, without consuming it.
func (c *content) skipSpace() (byte, error) {
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case '\n':
			c.skippedLines++
		case ' ', '\t', '\r':
		default:
			return b, c.r.UnreadByte()
		}
	}
}
