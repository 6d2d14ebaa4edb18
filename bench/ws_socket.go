package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// socketDiag asks the kernel about single sockets of this machine, whoever's they are, over
// netlink (sock_diag(7)). A question costs microseconds, where a look into /proc/net/tcp
// walks all sockets there are.
type socketDiag struct{ fd int }

// errNoSocket says that the kernel has no such connection, not even one that lingers.
var errNoSocket = errors.New("there is no such connection")

func openSocketDiag() (*socketDiag, error) {
	const netlinkSockDiag = 4
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return nil, fmt.Errorf("cannot ask about sockets: %w", err)
	}
	patience := syscall.NsecToTimeval(int64(time.Second)) // the kernel answers at once, or never
	if err := syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience); err != nil {
		_ = syscall.Close(fd)
		return nil, fmt.Errorf("cannot ask about sockets: %w", err)
	}
	return &socketDiag{fd}, nil
}

func (d *socketDiag) close() { _ = syscall.Close(d.fd) }

// The question and the answer of sock_diag(7) for one connection, in the byte order of the
// machine but for ports and addresses:
//
//	nlmsghdr         length u32, type u16, flags u16, sequence u32, port u32
//	inet_diag_req_v2 family u8, protocol u8, extensions u8, padding u8, states u32, id
//	inet_diag_msg    family u8, state u8, timer u8, retransmissions u8, id,
//	                 expires u32, rqueue u32, wqueue u32, uid u32, inode u32
//	id               local port u16, remote port u16, local address 16, remote address 16,
//	                 interface u32, cookie u64 (all ones: any)
const (
	netlinkHeaderBytes = 16
	diagIDBytes        = 48
	diagQuestionBytes  = netlinkHeaderBytes + 8 + diagIDBytes
	diagQueueAt        = netlinkHeaderBytes + 4 + diagIDBytes + 8
	diagAnswerBytes    = diagQueueAt + 12

	sockDiagByFamily = 20
)

// unacknowledged returns how many bytes a connection's owner has written that the other side
// has not taken. The connection is named as its owner sees it, by two addresses of IPv4. One
// that is gone, or was closed by its owner and waits for nothing more than time, is
// errNoSocket.
func (d *socketDiag) unacknowledged(local, remote netip.AddrPort) (uint32, error) {
	answer, err := d.ask(local, remote)
	if err != nil {
		return 0, fmt.Errorf("cannot ask about the connection from %v to %v: %w", remote, local, err)
	}
	const timeWait, closed, listens = 6, 7, 10 // include/net/tcp_states.h
	switch answer[netlinkHeaderBytes+1] {
	case timeWait, closed, listens: // the listener answers for connections that are not there
		return 0, errNoSocket
	}
	return binary.NativeEndian.Uint32(answer[diagQueueAt:]), nil
}

func (d *socketDiag) ask(local, remote netip.AddrPort) ([]byte, error) {
	q := make([]byte, 0, diagQuestionBytes)
	q = binary.NativeEndian.AppendUint32(q, diagQuestionBytes)
	q = binary.NativeEndian.AppendUint16(q, sockDiagByFamily)
	q = binary.NativeEndian.AppendUint16(q, syscall.NLM_F_REQUEST)
	q = append(q, make([]byte, 8)...)
	q = append(q, syscall.AF_INET, syscall.IPPROTO_TCP, 0, 0)
	q = binary.NativeEndian.AppendUint32(q, ^uint32(0))
	q = binary.BigEndian.AppendUint16(q, local.Port())
	q = binary.BigEndian.AppendUint16(q, remote.Port())
	for _, side := range []netip.AddrPort{local, remote} {
		address := side.Addr().As4()
		q = append(append(q, address[:]...), make([]byte, 12)...)
	}
	q = binary.NativeEndian.AppendUint32(q, 0)
	q = binary.NativeEndian.AppendUint64(q, ^uint64(0))
	if err := syscall.Sendto(d.fd, q, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(d.fd, answer, 0)
	switch {
	case err != nil:
		return nil, os.NewSyscallError("recvfrom", err)
	case n >= netlinkHeaderBytes+4 && binary.NativeEndian.Uint16(answer[4:]) == syscall.NLMSG_ERROR:
		if e := syscall.Errno(-int32(binary.NativeEndian.Uint32(answer[netlinkHeaderBytes:]))); e != syscall.ENOENT {
			return nil, e
		}
		return nil, errNoSocket
	case n < diagAnswerBytes || binary.NativeEndian.Uint16(answer[4:]) != sockDiagByFamily:
		return nil, fmt.Errorf("an answer of %d bytes", n)
	}
	return answer[:n], nil
}

// addrPort returns a TCP address as its parts.
func addrPort(a net.Addr) netip.AddrPort {
	at := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
