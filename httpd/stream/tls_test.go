package stream

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A reader that takes a little every quarter of a second is given time over TLS too, whose records cannot be written again from their middle.
func TestASlowReaderOfTLSIsGivenTime(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	certified.Close()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		s := &subscriber{hub: newNode(t, nil).hub, outbox: &outbox{}, conn: tls.Server(near, &tls.Config{Certificates: certified.TLS.Certificates}), encrypted: true}
		received := make(chan int)
		go func() {
			reader := tls.Client(slowReader{far}, &tls.Config{InsecureSkipVerify: true})
			n, _ := io.Copy(io.Discard, reader) // until the pipe ends
			received <- int(n)
		}()
		const sent = 200_000
		if err := s.writeOnce(batch{data: make([]byte, sent)}); err != nil {
			t.Errorf("writeOnce: %v", err)
		}
		_ = near.Close()
		if n := <-received; n != sent {
			t.Errorf("%d bytes came, want %d", n, sent)
		}
	})
}

// slowReader waits before each read, longer than a write waits between two looks.
type slowReader struct{ net.Conn }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(250 * time.Millisecond)
	return r.Conn.Read(p[:min(len(p), 4096)])
}
