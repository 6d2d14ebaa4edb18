package listen

// Batch is whole frames of data that arrived together, each with its header. It is valid until the visitor returns.
type Batch struct {
	Data   []byte
	Frames int
}

// Drain reads until the connection ends and hands over what arrives in batches. Only headers are read. It answers pings, and
// ends with a *CloseError or the error of the socket; a visitor that has enough closes the conn.
func (c *Conn) Drain(visit func(Batch)) error {
	c.start += c.skip
	c.skip = 0
	for {
		batch, control, err := wholeFrames(c.waiting())
		if err != nil {
			return err
		}
		if batch.Frames > 0 {
			visit(batch)
			c.start += len(batch.Data)
		}
		if control.size == 0 {
			if err := c.fill(); err != nil {
				return err
			}
			continue
		}
		payload := c.waiting()[control.size:][:control.length]
		c.start += control.size + control.length
		if err := c.control(control.op, payload); err != nil {
			return err
		}
	}
}

// wholeFrames returns the whole frames of data at the beginning of b, and the header of a whole control frame after them, if
// there is one.
func wholeFrames(b []byte) (batch Batch, control header, err error) {
	for end := 0; ; batch.Frames++ {
		batch.Data = b[:end]
		// Nearly every frame is a text of 126 bytes to 64 KiB.
		if rest := b[end:]; len(rest) >= 4 && rest[0] == finBit|OpText && rest[1] == 126 {
			size := 4 + int(rest[2])<<8 + int(rest[3])
			if len(rest) < size {
				return batch, header{}, nil
			}
			end += size
			continue
		}
		h, whole, err := parseHeader(b[end:])
		switch {
		case err != nil:
			return batch, header{}, err
		case !whole:
			return batch, header{}, nil
		case h.op >= OpClose:
			return batch, h, nil
		}
		end += h.size + h.length
	}
}

// Each calls visit for the payload of every frame.
func (b Batch) Each(visit func(payload []byte)) {
	for rest := b.Data; len(rest) > 0; {
		h, _, _ := parseHeader(rest) // Drain has seen that it is whole
		visit(rest[h.size : h.size+h.length])
		rest = rest[h.size+h.length:]
	}
}

// first returns the payload of the first frame.
func (b Batch) first() []byte {
	h, _, _ := parseHeader(b.Data)
	return b.Data[h.size : h.size+h.length]
}
