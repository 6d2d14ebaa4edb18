package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"ledgerd/bench/wsclient"
)

// fallSilent shows nothing for so long that the server must have given the connection up, and
// sees that it has. Little comes meanwhile: the socket has room for it.
func (m *member) fallSilent(ctx context.Context, c *wsclient.Conn) {
	defer c.Close()
	if pause(ctx, soakSilent) {
		m.seeEnd(ctx, c, fmt.Sprintf("nothing was shown for %v", soakSilent))
	}
}

// stopReading reads nothing until the socket has taken nothing for so long that the server must
// have given the connection up, and sees that it has. How soon a socket is full depends on how
// much is published, and that on the machine.
func (m *member) stopReading(ctx context.Context, c *wsclient.Conn) {
	defer c.Close()
	const longest = 2 * time.Minute
	most, grew := 0, time.Now()
	for began := grew; most == 0 || time.Since(grew) < soakRefused; {
		if !pause(ctx, time.Second) || time.Since(began) > longest {
			return
		}
		waiting, err := unread(c.NetConn())
		if err != nil {
			m.soak.fault("cannot tell how much waits for who does not read: %v", err)
			return
		}
		if waiting > most {
			most, grew = waiting, time.Now()
		}
	}
	m.seeEnd(ctx, c, fmt.Sprintf("nothing was taken for %v behind %d bytes", soakRefused, most))
}

// seeEnd reads what is left of a connection that must have ended because of what happened.
func (m *member) seeEnd(ctx context.Context, c *wsclient.Conn, happened string) {
	const toRead = 10 * time.Second // what lies in the socket's buffer
	left := 0
	err := drainFor(ctx, c, toRead, func(batch []byte, _ int) { left += len(batch) })
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		m.soak.fault("a connection is still there though %s; %d bytes were read then", happened, left)
	default:
		m.soak.silenced.Add(1)
	}
}

// unread returns how many bytes wait in a socket.
func unread(conn net.Conn) (n int, err error) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0, fmt.Errorf("%T is no TCP socket", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0, err
	}
	var waiting int32
	var failed syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&waiting)))
	})
	if err == nil && failed != 0 {
		err = failed
	}
	return int(waiting), err
}
