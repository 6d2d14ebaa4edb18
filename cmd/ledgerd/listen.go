package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// maxSocketPathBytes is how long the path of a Unix socket may be: the system ends it with a zero.
	maxSocketPathBytes = len(syscall.RawSockaddrUnix{}.Path) - 1
	// socketMode lets the owner and the group of a Unix socket connect to it.
	socketMode = 0o660
)

// checkAddress returns what is wrong with an address of --listen or --ops-listen, as far as it can be told without listening.
func checkAddress(address string) error {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		switch {
		case path == "" || path[0] == '@': // a socket whose name begins with @ has no file, so anybody could connect
			return errors.New("unix: must be followed by a path, such as unix:/run/ledgerd/api.sock")
		case len(path) > maxSocketPathBytes:
			return fmt.Errorf("the path of a Unix socket has at most %d bytes, and this one %d", maxSocketPathBytes, len(path))
		}
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is no address, such as 127.0.0.1:8080: %w", address, err)
	}
	return nil
}

// sameAddress reports whether two addresses cannot both be listened on.
func sameAddress(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || strings.HasPrefix(a, "unix:") || strings.HasPrefix(b, "unix:") {
		return a == b
	}
	isAny := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return portA == portB && portA != "0" && (hostA == hostB || isAny(hostA) || isAny(hostB))
}

// listenOn listens on an address of --listen or --ops-listen: host and port, or unix: and the path of a Unix socket. The file of the
// socket is removed when the listener is closed. Multipath TCP is off: its sockets take no filter that drops floods.
func listenOn(ctx context.Context, config net.ListenConfig, address string) (net.Listener, error) {
	config.SetMultipathTCP(false)
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		network := "tcp"
		if host, _, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).To4() != nil {
			network = "tcp4" // else 0.0.0.0 is all addresses of IPv6, too
		}
		return config.Listen(ctx, network, address)
	}
	stale, err := isStale(path)
	if stale {
		err = os.Remove(path)
	}
	if err != nil {
		return nil, err
	}
	// Linux makes the file with the mode that the socket has, less the umask. So it never has more than socketMode.
	config.Control = func(_, _ string, socket syscall.RawConn) error {
		var failed error
		err := socket.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), socketMode) })
		return errors.Join(err, failed)
	}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil { // the umask may have taken the group's part
		l.Close()
		return nil, err
	}
	return l, nil
}

// isStale reports whether a Unix socket is there that no process listens on any more, and refuses what is no socket. Of all else that is in
// the way, listening says what it is.
func isStale(path string) (bool, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return false, nil
	}
	if info.Mode().Type() != fs.ModeSocket {
		return false, fmt.Errorf("%s exists and is no socket", path)
	}
	peer, err := net.Dial("unix", path)
	if err == nil {
		return false, peer.Close() // listening says that the address is in use
	}
	return errors.Is(err, syscall.ECONNREFUSED), nil
}

// listening is the opening of a listener that a flag names; to has it.
func listening(ctx context.Context, flag string, config net.ListenConfig, address string, to func(net.Listener)) opening {
	explain := func(err error) error {
		if err != nil {
			return fmt.Errorf("cannot listen on %s: %w", flag, err)
		}
		return nil
	}
	return opening{flag, func() error {
		l, err := listenOn(ctx, config, address)
		if err == nil {
			to(l)
		}
		return explain(err)
	}, func() error { return explain(mayListen(ctx, address)) }}
}

// mayListen returns why an address cannot be listened on, but for one that is in use: that may be by the node whose configuration is checked.
// To a TCP port it binds a socket that does not listen: that tells whether the address is one of this machine, and free to this user. A node that
// begins meanwhile gets the port, as its socket also has SO_REUSEADDR.
func mayListen(ctx context.Context, address string) error {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		if _, err := isStale(path); err != nil {
			return err
		}
		return mayHold(filepath.Dir(path))
	}
	bound := errors.New("bound") // ends the making of the listener
	_, err := listenOn(ctx, net.ListenConfig{Control: func(network, address string, socket syscall.RawConn) error {
		var failed error
		err := socket.Control(func(fd uintptr) { failed = bind(int(fd), network, address) })
		return cmp.Or(err, failed, bound)
	}}, address)
	if errors.Is(err, bound) || errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	return err
}

// bind binds a socket of network tcp4 or tcp6 to an address of numbers. All addresses of IPv6 may be written 0.0.0.0, or left out.
func bind(fd int, network, address string) error {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return err
	}
	if network == "tcp4" {
		to := &syscall.SockaddrInet4{Port: at.Port}
		copy(to.Addr[:], at.IP.To4())
		return os.NewSyscallError("bind", syscall.Bind(fd, to))
	}
	to := &syscall.SockaddrInet6{Port: at.Port}
	if !at.IP.IsUnspecified() {
		copy(to.Addr[:], at.IP.To16())
	}
	if device, err := net.InterfaceByName(at.Zone); err == nil {
		to.ZoneId = uint32(device.Index)
	} else if index, err := strconv.ParseUint(at.Zone, 10, 32); err == nil {
		to.ZoneId = uint32(index)
	}
	return os.NewSyscallError("bind", syscall.Bind(fd, to))
}
