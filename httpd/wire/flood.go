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
)

const (
	// floodWindow is how long refused connections are counted, from the first of them.
	floodWindow = time.Second
	// floodRefusals is how many connections of a client are refused in a window before it is dropped for the rest of it.
	floodRefusals = 100
	// maxDropped is how many clients are dropped at a time. Their filter takes 4 KiB of the 20 that Linux lets a socket have.
	maxDropped = 64
)

// floodFilter has the kernel drop the SYNs of clients that connect again and again although they are refused: to accept such a connection and
// close it costs 15 µs to 100 µs, and there are up to 25,000 a second. An attempt to connect then takes at least the second that TCP waits before it
// sends a SYN again (RFC 6298). Where the kernel takes no filter, nothing is dropped.
type floodFilter struct {
	socket syscall.RawConn // that listens; nil: it takes no filter

	mu      sync.Mutex
	refused map[netip.Prefix]int // in this window, by the widest network that the client's connections count for
	dropped []netip.Prefix
}

func newFloodFilter(ln net.Listener) *floodFilter {
	f := &floodFilter{refused: make(map[netip.Prefix]int)}
	if tcp, ok := ln.(*net.TCPListener); ok {
		f.socket, _ = tcp.SyscallConn() // nil where it is closed
	}
	return f
}

// count counts a refused connection of a client. It returns whether the client is dropped from now on.
func (f *floodFilter) count(client netip.Addr) bool {
	if f.socket == nil {
		return false
	}
	of := networks(client)
	widest := of[len(of)-1]
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.refused) == 0 {
		time.AfterFunc(floodWindow, f.forget)
	}
	f.refused[widest]++
	if f.refused[widest] != floodRefusals || len(f.dropped) == maxDropped {
		return false
	}
	f.dropped = append(f.dropped, widest)
	return f.attachLocked() == nil
}

// forget ends a window.
func (f *floodFilter) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.refused)
	if len(f.dropped) > 0 {
		f.dropped = nil
		_ = f.attachLocked() // fails where the socket is closed, or took no filter before
	}
}

// attachLocked replaces the socket's filter by one for the clients that are dropped. Connections inherit the filter that the
// socket had when they began; it only looks at SYNs, so it means nothing to them.
func (f *floodFilter) attachLocked() error {
	program, err := bpf.Assemble(dropSYNs(f.dropped))
	if err != nil {
		return err
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))} // bpf.RawInstruction is sock_filter
	var failed error
	err = f.socket.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &filter)
	})
	return errors.Join(err, failed)
}

// dropSYNs returns a classic BPF program that drops a segment of TCP if it is a SYN, without ACK, from one of these networks: IPv4 addresses and
// networks of IPv6 with ratelimit.SiteBits. The segment begins with its TCP header (RFC 9293); that of IP is loaded from SKF_NET_OFF (Linux,
// Documentation/networking/filter.rst).
func dropSYNs(from []netip.Prefix) []bpf.Instruction {
	const network = 1<<32 - 0x100000 // SKF_NET_OFF
	const flags, syn, ack = 13, 0x02, 0x10
	pass, drop := bpf.RetConstant{Val: math.MaxUint32}, bpf.RetConstant{Val: 0}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: flags, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: syn | ack},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: syn, SkipTrue: 1},
		pass,
	}
	type part struct {
		at, bytes int // in the header of IP
		value     uint32
	}
	for _, p := range from {
		source := p.Addr().AsSlice()
		version, parts := uint32(0x40), []part{{12, 4, binary.BigEndian.Uint32(source)}}
		if p.Addr().Is6() {
			version, parts = 0x60, []part{{8, 4, binary.BigEndian.Uint32(source)}, {12, 2, uint32(binary.BigEndian.Uint16(source[4:]))}}
		}
		program = append(program, bpf.LoadAbsolute{Off: network, Size: 1}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0})
		rest := 2 * len(parts) // instructions from the next part to the end of this network's
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: version, SkipTrue: uint8(rest + 1)})
		for _, w := range parts {
			rest -= 2
			program = append(program, bpf.LoadAbsolute{Off: uint32(network + w.at), Size: w.bytes},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: w.value, SkipTrue: uint8(rest + 1)})
		}
		program = append(program, drop)
	}
	return append(program, pass)
}
