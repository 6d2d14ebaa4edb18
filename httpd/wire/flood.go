package wire

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"ledgerd/httpd/ratelimit"
)

const (
	// floodWindow is how long refused connections are counted, from the first of them.
	floodWindow = time.Second
	// floodRefusals is how many connections of a client are refused in a window before it is dropped for the rest of it.
	floodRefusals = 100
	// maxDropped is how many networks are dropped at a time. Linux takes up to 400 bytes for each, also of the filter that is being replaced, of
	// the 20 KiB that a socket may have for such things (net.core.optmem_max; 128 KiB since Linux 6.8).
	maxDropped = 24
)

// floodFilter has the kernel drop the SYNs of clients that connect again and again although they are refused: to accept such a connection and
// close it costs 15 µs to 100 µs, and there are up to 25,000 a second. An attempt to connect then takes at least the second that TCP waits before it
// sends a SYN again (RFC 6298). Where the kernel takes no filter, nothing is dropped.
type floodFilter struct {
	socket   syscall.RawConn // that listens; nil: it takes no filter
	identity *ratelimit.Identity

	mu      sync.Mutex
	refused map[netip.Prefix]int // in this window, by client
	dropped []netip.Prefix
}

func newFloodFilter(ln net.Listener, identity *ratelimit.Identity) *floodFilter {
	f := &floodFilter{identity: identity, refused: make(map[netip.Prefix]int)}
	if tcp, ok := ln.(*net.TCPListener); ok {
		f.socket, _ = tcp.SyscallConn() // nil where it is closed
	}
	return f
}

// count counts a refused connection of a client. It returns whether the client is dropped from now on.
func (f *floodFilter) count(client netip.Addr) (drops bool) {
	if f.socket == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.refused) == 0 {
		time.AfterFunc(floodWindow, f.forget)
	}
	network := netip.PrefixFrom(client, min(client.BitLen(), ratelimit.ClientBits)) // the addresses that are one client
	f.refused[network]++
	if f.refused[network] == floodRefusals && len(f.dropped) < maxDropped && !f.identity.Favors(network) {
		f.dropped = append(f.dropped, network)
		drops = f.attachLocked() == nil
	}
	return drops
}

// forget ends a window.
func (f *floodFilter) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.refused)
	if len(f.dropped) > 0 {
		f.dropped = nil
		_ = f.set(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0) }) // or there was none
	}
}

// attachLocked gives the socket a filter for what is dropped. A connection inherits the one that the socket has when it begins, which means nothing to it:
// only SYNs are looked at.
func (f *floodFilter) attachLocked() error {
	program, err := bpf.Assemble(dropSYNs(f.dropped, ipHeader))
	if err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))} // bpf.RawInstruction is sock_filter
	return f.set(func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
	})
}

// set sets an option of the socket.
func (f *floodFilter) set(option func(fd int) error) error {
	var failed error
	err := f.socket.Control(func(fd uintptr) { failed = option(int(fd)) })
	return errors.Join(err, failed)
}

// ipHeader is where a filter of TCP segments loads the header of IP from: SKF_NET_OFF of linux/filter.h.
const ipHeader = 1<<32 - 0x100000

// dropSYNs returns a classic BPF program that drops a segment of TCP if it is a SYN, without ACK, from one of these networks, as they come from
// the function of that name. The segment begins with its TCP header (RFC 9293).
func dropSYNs(from []netip.Prefix, ipHeader int) []bpf.Instruction {
	const flags, syn, ack = 13, 0x02, 0x10
	pass, drop := bpf.RetConstant{Val: math.MaxUint32}, bpf.RetConstant{Val: 0}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: flags, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: syn | ack},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: syn, SkipTrue: 1},
		pass,
	}
	for _, network := range from {
		version, sourceAt := uint32(0x40), 12 // in the header of IP (RFC 791, RFC 8200)
		if network.Addr().Is6() {
			version, sourceAt = 0x60, 8
		}
		source, words := network.Addr().AsSlice(), network.Bits()/16 // of two bytes
		program = append(program, bpf.LoadAbsolute{Off: uint32(ipHeader), Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: version, SkipTrue: uint8(2*words + 1)})
		for i := range words {
			program = append(program, bpf.LoadAbsolute{Off: uint32(ipHeader + sourceAt + 2*i), Size: 2},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(binary.BigEndian.Uint16(source[2*i:])), SkipTrue: uint8(2*(words-i) - 1)})
		}
		program = append(program, drop)
	}
	return append(program, pass)
}
