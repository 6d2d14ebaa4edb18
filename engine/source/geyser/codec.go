package geyser

import (
	"google.golang.org/grpc/mem"

	"ledgerd/engine/source/yellowstone"
)

// message is an update as it comes from the socket.
type message struct {
	decoder yellowstone.Decoder
	update  yellowstone.Update
	size    int   // of the message in bytes
	err     error // what is wrong with it
}

// codec writes requests that are encoded already and reads updates without a copy of the bytes: the
// update is made of grpc's own buffers, which grpc takes back then.
type codec struct{}

// Name is the subtype of the content.
func (codec) Name() string { return "proto" }

// Marshal takes a []byte.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal fills a *message. What is wrong with the bytes is noted there, to be told from what is wrong
// with the connection.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m := v.(*message)
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	m.size = buffer.Len()
	m.err = m.decoder.Decode(buffer.ReadOnlyData(), &m.update)
	return nil
}
