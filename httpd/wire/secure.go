package wire

import (
	"bytes"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

const (
	// sealBytes is how much is encrypted before it is sent.
	sealBytes = 16 << 10
	// lastWrite is how long the end of a connection waits for room in its socket, for the alert that announces it.
	lastWrite = time.Millisecond
)

// secure lies between crypto/tls and the socket. What TLS writes is kept here until it is sent by whoever writes: so nothing that TLS does by
// itself, such as to answer a KeyUpdate within a read, waits for the peer, and a write that its deadline has ended can be continued.
// What TLS reads is priced, see allowance.
type secure struct {
	net.Conn // the socket
	tls      *tls.Conn
	owner    *Conn
	records  allowance // the reader's

	writing sync.Mutex // is held by who sends, and guards the next two
	sending *bytes.Buffer
	plain   int // how many bytes that were encrypted are not reported as written yet

	mu     sync.Mutex
	sealed *bytes.Buffer // behind what is being sent; nil: nothing
}

// sealedBuffers are lent to connections that have something to send.
var sealedBuffers = sync.Pool{New: func() any { return bytes.NewBuffer(make([]byte, 0, sealBytes+sealBytes/8)) }}

// Write is called by TLS.
func (s *secure) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sealed == nil {
		s.sealed = sealedBuffers.Get().(*bytes.Buffer)
	}
	return s.sealed.Write(p)
}

// Read is called by TLS. Until the connection is taken over, its only goroutine sends here what the peer of a handshake waits for.
func (s *secure) Read(p []byte) (int, error) {
	if !s.owner.takenOver.Load() {
		if err := s.owner.inPieces(s.flush); err != nil {
			return 0, err
		}
	}
	n, err := s.Conn.Read(p[:min(len(p), s.records.most())])
	if !s.records.pay(p[:n]) {
		s.owner.caps.counts.Wasteful.Add(1)
		return 0, errWasteful
	}
	return n, err
}

// SetWriteDeadline is called by TLS, for the alert that ends the connection. Whoever sends sets the deadlines of the socket.
func (s *secure) SetWriteDeadline(time.Time) error { return nil }

// write encrypts and sends p. After a deadline it returns how much of p may be counted as written: the rest, byte by byte the same, is to be written
// next, and part of it is encrypted already.
func (s *secure) write(p []byte) (n int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for n < len(p) {
		if s.plain == 0 {
			s.plain = min(len(p)-n, sealBytes)
			if _, err := s.tls.Write(p[n : n+s.plain]); err != nil {
				return n, err
			}
		}
		taken, err := s.send()
		if err != nil {
			taken = min(taken, s.plain-1)
			s.plain -= taken
			return n + taken, err
		}
		n += s.plain
		s.plain = 0
	}
	return n, nil
}

// flush sends what TLS has written by itself.
func (s *secure) flush() (taken int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.send()
}

// send sends all that is encrypted. s.writing is held.
func (s *secure) send() (taken int, err error) {
	for {
		if s.sending == nil {
			s.mu.Lock()
			s.sending, s.sealed = s.sealed, nil
			s.mu.Unlock()
			if s.sending == nil {
				return taken, nil
			}
		}
		n, err := s.Conn.Write(s.sending.Bytes())
		s.sending.Next(n)
		taken += n
		if err != nil {
			return taken, err
		}
		s.sending.Reset()
		sealedBuffers.Put(s.sending)
		s.sending = nil
	}
}

// Close is called by TLS, and closes the socket. It does not wait for a peer that reads nothing.
func (s *secure) Close() error {
	if s.writing.TryLock() {
		_ = s.Conn.SetWriteDeadline(time.Now().Add(lastWrite)) // the end comes with the alert or without it
		_, _ = s.send()
		s.writing.Unlock()
	}
	return s.Conn.Close()
}
