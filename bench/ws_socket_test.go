package bench

import (
	"errors"
	"net"
	"testing"
	"time"
)

// What one side wrote and the other has not taken is seen from outside, and that the socket
// is gone.
func TestSocketDiagSeesWhatAPeerHasNotTaken(t *testing.T) {
	diag, err := openSocketDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer diag.close()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	local, remote := addrPort(server.LocalAddr()), addrPort(server.RemoteAddr())
	if n, err := diag.unacknowledged(local, remote); n != 0 || err != nil {
		t.Errorf("before anything was written: %d bytes, err = %v", n, err)
	}
	// The socket refuses what is beyond its buffers.
	wrote := 0
	for err == nil {
		var n int
		server.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
		n, err = server.Write(make([]byte, 1<<20))
		wrote += n
	}
	if n, err := diag.unacknowledged(local, remote); n == 0 || int(n) > wrote || err != nil {
		t.Errorf("%d bytes are not taken of %d, err = %v", n, wrote, err)
	}
	server.(*net.TCPConn).SetLinger(0)
	server.Close()
	if _, err := diag.unacknowledged(local, remote); !errors.Is(err, errNoSocket) {
		t.Errorf("after the reset: err = %v", err)
	}
}
