package wsclient

// Drain reads until the connection ends and hands over what arrives in batches: all whole
// frames of data that wait, one after the other with their headers, and how many there are.
// Only headers are looked at. A batch is valid until visit returns. Drain answers pings, and
// ends with a *CloseError or the error of the socket; a visitor that has enough closes the
// conn.
func (c *Conn) Drain(visit func(batch []byte, frames int)) error {
	c.start += c.skip
	c.skip = 0
	for {
		waiting := c.waiting()
		hop, frames, control, err := hopFrames(waiting)
		if err != nil {
			return err
		}
		if frames > 0 {
			visit(waiting[:hop], frames)
			c.start += hop
		}
		if control.size == 0 {
			if err := c.fill(); err != nil {
				return err
			}
			continue
		}
		payload := waiting[hop+control.size:][:control.length]
		c.start += control.size + control.length
		if err := c.control(control.op, payload); err != nil {
			return err
		}
	}
}

// hopFrames returns how far whole frames of data reach and how many they are, and the header
// of a whole control frame behind them, if there is one.
func hopFrames(b []byte) (hop, frames int, control header, err error) {
	for {
		// Nearly every frame is a text of 126 bytes to 64 KiB.
		if rest := b[hop:]; len(rest) >= 4 && rest[0] == finBit|OpText && rest[1] == 126 {
			size := 4 + int(rest[2])<<8 + int(rest[3])
			if len(rest) < size {
				return hop, frames, header{}, nil
			}
			hop += size
			frames++
			continue
		}
		h, whole, err := parseHeader(b[hop:])
		if err != nil {
			return hop, frames, header{}, err
		}
		if !whole || len(b)-hop < h.size+h.length {
			return hop, frames, header{}, nil
		}
		if h.op >= OpClose {
			return hop, frames, h, nil
		}
		hop += h.size + h.length
		frames++
	}
}

// Each calls visit for every frame of a batch that Drain handed over.
func Each(batch []byte, visit func(payload []byte)) {
	for len(batch) > 0 {
		h, _, _ := parseHeader(batch) // Drain has seen that it is whole
		visit(batch[h.size : h.size+h.length])
		batch = batch[h.size+h.length:]
	}
}
