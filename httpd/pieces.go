package httpd

import (
	"errors"
	"fmt"
	"io"

	"ledgerd/httpd/accesslog"
)

// pieces is the body of a response whose length is not known when it begins. The goroutine of the handler makes it in the buffer of the
// answer and sends it piece by piece before the exchange ends. An error ends the connection before the end of the body, so that the
// client does not take a part for the whole.
type pieces struct {
	x     *Exchange
	next  func(dst []byte) (piece []byte, more bool, err error)
	log   *accesslog.Log // gets an entry once the response was sent; nil: there is none
	entry accesslog.Entry
}

// Continue makes the body the first piece of the response. next is called after Answer has returned; it appends the next piece to an
// empty buffer, and says whether there are more.
func (x *Exchange) Continue(next func(dst []byte) (piece []byte, more bool, err error)) {
	x.pieces = &pieces{x: x, next: next}
}

// Keep says how many bytes are held besides the answer, or besides its pieces while they are made. They are taken from the budget at
// the next Settle, or once a piece is made.
func (x *Exchange) Keep(bytes int) { x.kept = bytes }

// SupportsBodyWriteTo makes fasthttp call WriteTo, which sends whole pieces, instead of Read.
func (p *pieces) SupportsBodyWriteTo() bool { return true }

func (p *pieces) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// WriteTo sends the pieces, each as a chunk. Each has the time of the connection for what it sends.
func (p *pieces) WriteTo(w io.Writer) (n int64, err error) {
	x := p.x
	defer func() {
		if v := recover(); v != nil {
			x.server.panicked(x.route.label, v)
			err = fmt.Errorf("a piece of a response: %v", v)
		}
		p.entry.Bytes = int(n)
	}()
	for more := true; ; {
		wrote, err := w.Write(x.body)
		n += int64(wrote)
		if err != nil || !more {
			return n, err
		}
		if x.body, more, err = p.next(x.body[:0]); err != nil {
			return n, err
		}
		x.holdBytes(longBytes(x.body) + x.kept)
	}
}

// Close notes the response.
func (p *pieces) Close() error {
	if p.log != nil {
		p.entry.Took = p.x.server.config.Now().Sub(p.x.now)
		p.log.Append(p.entry)
	}
	return nil
}
