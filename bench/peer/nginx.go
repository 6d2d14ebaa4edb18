package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// nginxProgram is looked for on the PATH and where Debian keeps it.
const nginxProgram = "nginx"

var errNoNginx = &AbsentError{nginxProgram, "the Debian package nginx has it"}

// nginxConfig answers every path the same. Everything that is written to goes to a directory of
// its own, and connections last as long as ledgerd's do.
const nginxConfig = `daemon off;
worker_processes auto;
worker_rlimit_nofile 20000;
pid %[1]s/nginx.pid;
error_log stderr error;
events { worker_connections 16384; }
http {
	access_log off;
	server_tokens off;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s backlog=4096;
		location / {
			default_type %[3]s;
%[4]s			return 200 %[5]s;
		}
	}
}
`

// program is a service that is another program, and answers HTTP.
type program struct {
	*process
	dir     string
	address netip.AddrPort
	version string
}

func (s *program) Address() netip.AddrPort { return s.address }
func (s *program) Native() bool            { return false }
func (s *program) Version() string         { return s.version }

// Pids are the process and those that it has started.
func (s *program) Pids() []int {
	pids := []int{s.Pid()}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", s.Pid()))
	if err != nil {
		return pids
	}
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Stop ends the process and removes its files.
func (s *program) Stop() error { return errors.Join(s.stop(syscall.SIGTERM), os.RemoveAll(s.dir)) }

// Request implements RESTServer.
func (s *program) Request(dst []byte, key string, fresh bool) []byte {
	return Get(dst, s.address.String(), "/api/account/"+key, AnyCoding, fresh)
}

func startNginx(ctx context.Context, c *RESTConfig) (RESTServer, error) {
	path, err := find(nginxProgram, "/usr/sbin", errNoNginx)
	if err != nil {
		return nil, err
	}
	s, err := newProgram(ctx, c.Dir, nginxProgram)
	if err != nil {
		return nil, err
	}
	if said, err := exec.CommandContext(ctx, path, "-v").CombinedOutput(); err == nil {
		s.version = strings.TrimPrefix(strings.TrimSpace(string(said)), "nginx version: ")
	}
	var fields strings.Builder
	for _, f := range c.Answer.Fields {
		fmt.Fprintf(&fields, "\t\t\tadd_header %s %s always;\n", f.Name, nginxQuoted(f.Value))
	}
	text := fmt.Sprintf(nginxConfig, s.dir, s.address, c.Answer.ContentType, fields.String(), nginxQuoted(c.Answer.Body))
	config := filepath.Join(s.dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	return s, s.launch(ctx, exec.CommandContext(ctx, path, "-e", "stderr", "-p", s.dir, "-c", config))
}

// nginxQuoted writes a text as the configuration of nginx has it. There is no way to write a
// dollar sign, and none is needed.
func nginxQuoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// find looks for a program on the PATH, then in one place more.
func find(name, place string, absent *AbsentError) (string, error) {
	for _, candidate := range []string{name, filepath.Join(place, name)} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", absent
}

// newProgram makes a directory and finds a port for a program.
func newProgram(ctx context.Context, dir, name string) (*program, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &program{address: address}
	s.dir, err = os.MkdirTemp(dir, name+"-")
	return s, err
}

// freeAddress returns one where nobody listens. Somebody may come first, which the program then
// says.
func freeAddress(ctx context.Context) (netip.AddrPort, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return netip.AddrPort{}, err
	}
	return ln.Addr().(*net.TCPAddr).AddrPort(), ln.Close()
}

// launch starts the program and waits until it listens.
func (s *program) launch(ctx context.Context, cmd *exec.Cmd) error {
	var err error
	if s.process, err = launch(cmd); err != nil {
		return errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := listens(ctx, s.process, s.address); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// startPatience is how long a program may take to listen.
const startPatience = 20 * time.Second

func listens(ctx context.Context, p *process, address netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it ended: %s", &p.stderr)
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w: %s", err, &p.stderr)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
