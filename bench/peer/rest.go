package peer

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/load"
	"ledgerd/bench/proc"
)

// Answer is what ledgerd answered once, without what every server says in its own way: the
// date, the length and the connection.
type Answer struct {
	Head http.Header
	Body string
}

// Records are what can be asked for.
type Records struct {
	Count  int // how many there are
	Record func(i int) AccountRecord
}

// AccountRecord is an account as the interface shows it.
type AccountRecord struct {
	Pubkey     string `json:"pubkey"`
	Lamports   uint64 `json:"lamports"`
	Owner      string `json:"owner"`
	Executable bool   `json:"executable"`
	RentEpoch  uint64 `json:"rent_epoch"`
}

// RESTConfig is what services that answer are started with.
type RESTConfig struct {
	Self    []string // the command that runs Serve when a peer's name is added
	Dir     string   // for files; nothing is left there
	Answer  Answer   // for those that answer the same to everybody
	Records Records  // for those that look it up
}

// RESTPeer is a kind of service that answers one question at a time.
type RESTPeer struct {
	Name    string
	About   string // one line: what it is, and what it does less or more than ledgerd
	LooksUp bool   // it answers with the record that is asked for, else with the same to everybody
	start   func(ctx context.Context, c *RESTConfig, p *RESTPeer) (*RESTServer, error)
}

// RESTPeers are all there are, the fastest kind first.
var RESTPeers = []RESTPeer{
	{"bare", "fasthttp with the settings, fields and body of ledgerd's answer; it looks nothing up and counts no limits", false, startSelf},
	{"nginx", "return 200 with the fields and body of ledgerd's answer, proxying to nothing; it looks nothing up and counts no limits", false, startNginx},
	{"nethttp", "net/http, a map behind a lock, encoding/json for each answer; it counts no limits", true, startSelf},
	{"nethttp-tuned", "net/http and a map of bodies encoded beforehand, with a stated length; it counts no limits", true, startSelf},
	{"webdis", "Redis GET over webdis; its answers have fewer fields than ledgerd's, and it counts no limits", true, startWebdis},
	{"redis", "Redis GET in its own protocol: no HTTP, no fields, no limits", true, startRedisGet},
	{"valkey", "the same on Valkey", true, startRedisGet},
}

// Start starts one, which ends with ctx at the latest. It returns an *AbsentError if the
// program it needs is not there.
func (p *RESTPeer) Start(ctx context.Context, c RESTConfig) (*RESTServer, error) {
	s, err := p.start(ctx, &c, p)
	if err != nil {
		return nil, fmt.Errorf("cannot start peer %s: %w", p.Name, err)
	}
	return s, nil
}

// RESTServer is a running one.
type RESTServer struct {
	Address netip.AddrPort
	Version string
	Frame   load.Framing                        // of its responses; nil: HTTP
	request func(dst []byte, key string) []byte // nil: as ledgerd is asked
	pids    []int
	Stop    func() error // ends the processes, waits for them, and removes their files
}

// Request appends what asks for a record. All that speak HTTP are asked with the same fields.
func (s *RESTServer) Request(dst []byte, key string) []byte {
	if s.request != nil {
		return s.request(dst, key)
	}
	return load.AppendGet(dst, s.Address.String(), "/api/account/"+key, load.AnyCoding)
}

// Pids are the processes, with those that they have started.
func (s *RESTServer) Pids() (all []int) {
	for _, pid := range s.pids {
		all = append(all, pid)
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid)) // none, if it is gone
		for child := range strings.FieldsSeq(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// startSelf starts a service that is this program again. It is told the answer, and the records if it looks them up, through its
// stdin.
func startSelf(ctx context.Context, c *RESTConfig, p *RESTPeer) (*RESTServer, error) {
	child, err := startChild(ctx, &Config{Self: c.Self}, p.Name)
	if err != nil {
		return nil, err
	}
	records := c.Records
	if !p.LooksUp {
		records.Count = 0
	}
	out := bufio.NewWriterSize(child.feed, 64<<10)
	e := gob.NewEncoder(out)
	err = errors.Join(e.Encode(c.Answer), e.Encode(records.Count))
	for i := 0; i < records.Count && err == nil; i++ {
		err = e.Encode(records.Record(i))
	}
	address, err1 := netip.ParseAddrPort(child.addr)
	if err = errors.Join(err, out.Flush(), err1); err != nil {
		return nil, errors.Join(err, child.Stop())
	}
	return &RESTServer{Address: address, Version: runtime.Version(), pids: []int{child.Pid()}, Stop: child.Stop}, nil
}

// hear reads what startSelf tells.
func hear(in io.Reader) (answer Answer, records []AccountRecord, err error) {
	count := 0
	d := gob.NewDecoder(bufio.NewReaderSize(in, 64<<10))
	err = errors.Join(d.Decode(&answer), d.Decode(&count))
	for ; count > 0 && err == nil; count-- {
		var r AccountRecord
		err = d.Decode(&r)
		records = append(records, r)
	}
	return answer, records, err
}

// serveUntil serves until in ends: then nobody wants it any more.
func serveUntil(in io.Reader, ln net.Listener, serve func(net.Listener) error) error {
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = ln.Close()
	}()
	if err := serve(ln); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// startProgram starts a service that is another program, and waits until it listens. It gets a directory of its own
// and an address, and words returns the command that it is, having written its configuration.
func startProgram(ctx context.Context, c *RESTConfig, name string, words func(dir string, address netip.AddrPort) ([]string, error)) (*RESTServer, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, name+"-")
	if err != nil {
		return nil, err
	}
	command, err := words(dir, address)
	var p *proc.Process
	if err == nil {
		p, err = proc.Launch(ctx, proc.Command{Words: command})
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	s := &RESTServer{Address: address, pids: []int{p.Pid()}, Stop: func() error { return errors.Join(end(p), os.RemoveAll(dir)) }}
	err = await(ctx, p, startPatience, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// find looks for a program on the PATH, then where Debian keeps servers.
func find(name string) (string, error) {
	for _, candidate := range []string{name, filepath.Join("/usr/sbin", name)} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", &AbsentError{name, fmt.Sprintf("the Debian package %s has it, where there is one", name)}
}

// versionOf returns what a program says that it is, "" if it does not.
func versionOf(ctx context.Context, path, flag string) string {
	said, _ := exec.CommandContext(ctx, path, flag).CombinedOutput()
	return strings.TrimSpace(string(said))
}

// freeAddress returns one where nobody listens. Another program may take it first, which the peer
// then says.
func freeAddress(ctx context.Context) (netip.AddrPort, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, err
	}
	return ln.Addr().(*net.TCPAddr).AddrPort(), ln.Close()
}

// await tries something, time and again, until it works.
func await(ctx context.Context, p *proc.Process, patience time.Duration, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Gone():
			return p.Failure("it ended")
		case <-ctx.Done():
			return p.Failure(fmt.Sprintf("it does not answer: %v", err))
		case <-time.After(time.Millisecond):
		}
	}
}
