package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

func startCanned(ctx context.Context, c *RESTConfig) (*RESTServer, error) {
	return startRESTChild(ctx, c, "canned", "one thread and epoll", func(w io.Writer) error {
		return json.NewEncoder(w).Encode(c.Answer)
	})
}

// cannedBurst is how many answers are written at once.
const cannedBurst = 64

// canned answers from one thread, with as few calls of the kernel as it takes.
type canned struct {
	listener, epoll int
	answers         []byte // one behind the other
	size            int    // of one
	room            []byte
}

// serveCanned answers everybody the answer that comes first, until in ends.
func serveCanned(ln net.Listener, in io.Reader) error {
	var a Answer
	if err := json.NewDecoder(in).Decode(&a); err != nil {
		return err
	}
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	text := a.text(time.Now())
	c := &canned{int(file.Fd()), -1, bytes.Repeat(text, cannedBurst), len(text), make([]byte, 64<<10)}
	if c.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err == nil {
		err = errors.Join(syscall.SetNonblock(c.listener, true), c.watch(c.listener))
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = syscall.Shutdown(c.listener, syscall.SHUT_RD) // which it is told of
	}()
	events := make([]syscall.EpollEvent, 256)
	for err == nil {
		var n int
		if n, err = syscall.EpollWait(c.epoll, events, -1); errors.Is(err, syscall.EINTR) {
			err = nil
		}
		for _, e := range events[:max(0, n)] {
			if fd := int(e.Fd); fd == c.listener {
				if e.Events&syscall.EPOLLHUP != 0 {
					return file.Close()
				}
				c.accept()
			} else if !c.answer(fd) {
				_ = syscall.Close(fd)
			}
		}
	}
	return errors.Join(fmt.Errorf("cannot wait for requests: %w", err), file.Close())
}

func (c *canned) watch(fd int) error {
	return syscall.EpollCtl(c.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)})
}

func (c *canned) accept() {
	for {
		fd, _, err := syscall.Accept4(c.listener, syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
		if err != nil {
			return
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		if c.watch(fd) != nil {
			_ = syscall.Close(fd)
		}
	}
}

var emptyLine = []byte("\r\n\r\n")

// answer reads requests, which come whole here, and answers them; false when the connection is
// to be closed.
func (c *canned) answer(fd int) bool {
	n, err := syscall.Read(fd, c.room)
	if err != nil || n == 0 {
		return errors.Is(err, syscall.EAGAIN)
	}
	requests := c.room[:n]
	for count := bytes.Count(requests, emptyLine); count > 0; {
		burst := min(count, cannedBurst)
		if wrote, err := syscall.Write(fd, c.answers[:burst*c.size]); err != nil || wrote < burst*c.size {
			return false
		}
		count -= burst
	}
	return !bytes.Contains(requests, []byte("Connection: close"))
}
