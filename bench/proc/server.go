package proc

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options say where a server lives. The zero value works.
type Options struct {
	Dir       string // where data directories are made; "": the system's place for such
	DataDir   string // the data directory itself, which is kept at the end; "": one is made in Dir
	Listen    string // "": a free port of 127.0.0.1
	OpsListen string // "": a free port of 127.0.0.1
}

const (
	// readyTimeout is how long a server may take to listen, and to answer questions.
	readyTimeout = 60 * time.Second
	// stopTimeout is more than the ten seconds that a clean stop may take.
	stopTimeout = 30 * time.Second
	// pipeBytes is how much of the feed the kernel takes while the server is busy: the most
	// that anybody may ask for.
	pipeBytes = 1 << 20
)

// Server is a running ledgerd.
type Server struct {
	*Process
	feed     *os.File
	dataDir  string
	made     bool // the data directory is ours
	ending   sync.Once
	url, ops string
	client   *http.Client
}

// Start starts the program as `ledgerd serve` and waits until it listens. It follows its
// standard input, knows no rate limits and no caps for clients of this machine, and logs
// warnings; args come behind and may say otherwise. The process ends at the latest with ctx.
func Start(ctx context.Context, program string, args []string, o Options) (*Server, error) {
	s := &Server{
		dataDir: o.DataDir,
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}, Timeout: readyTimeout},
	}
	if s.dataDir == "" {
		dir, err := os.MkdirTemp(o.Dir, "ledgerd-bench-")
		if err != nil {
			return nil, fmt.Errorf("cannot start ledgerd: %w", err)
		}
		s.dataDir, s.made = dir, true
	}
	const anyPort = "127.0.0.1:0"
	words := slices.Concat([]string{
		program, "serve", "--source", "file:-", "--data-dir", s.dataDir,
		"--listen", cmp.Or(o.Listen, anyPort), "--ops-listen", cmp.Or(o.OpsListen, anyPort),
		"--rate-limit-minute", "0", "--rate-limit-hour", "0", "--rate-limit-exempt", "127.0.0.0/8", "--log-level", "warn",
	}, args)
	err := s.launch(ctx, words)
	if err == nil {
		err = s.listens(ctx)
	}
	if err != nil {
		s.Kill()
		return nil, fmt.Errorf("cannot start ledgerd: %w", err)
	}
	return s, nil
}

// launch starts the process on a feed.
func (s *Server) launch(ctx context.Context, words []string) error {
	stdin, feed, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	s.feed = feed
	widen(feed)
	s.Process, err = Launch(ctx, Command{Words: words, Env: Environment(), Stdin: stdin})
	return err
}

// Environment returns that of this process without what would be flags of ledgerd's.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEDGERD_") })
}

// widen makes a pipe as large as it may be. A smaller one works, with more turns between
// its ends.
func widen(pipe *os.File) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_SETPIPE_SZ, pipeBytes)
	})
}

// Addresses finds the base addresses of both listeners in what ledgerd prints once it listens: URL, OpsURL.
var Addresses = regexp.MustCompile(`REST +(http://\S+/api)/status(?s:.*)operators +(http://\S+)/metrics`)

// listens waits until the banner tells the addresses.
func (s *Server) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	m, err := s.Await(ctx, Addresses)
	if err != nil {
		return err
	}
	s.url, s.ops = m[1], m[2]
	return nil
}

// Ready waits until the server answers questions, and fails if it ends before. A server on an
// empty data directory needs base state and the first block for that, so the feed comes before.
func (s *Server) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		status, said, err := Get(ctx, s.client, s.ops+"/readyz")
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-s.Gone():
			return s.Failure("ledgerd ended before it was ready")
		case <-ctx.Done():
			return s.Failure(fmt.Sprintf("ledgerd is not ready: %v: %s", ctx.Err(), said))
		case <-time.After(time.Millisecond):
		}
	}
}

// Get asks for an address and returns the whole answer, whatever its status.
func Get(ctx context.Context, client *http.Client, address string) (status int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// URL returns the base address of the public listener: http://HOST:PORT/api.
func (s *Server) URL() string { return s.url }

// StreamURL returns the address to subscribe at: ws://HOST:PORT/api/ws/accounts.
func (s *Server) StreamURL() string {
	return "ws" + strings.TrimPrefix(s.url, "http") + "/ws/accounts"
}

// OpsURL returns the base address of the operators' listener: http://HOST:PORT.
func (s *Server) OpsURL() string { return s.ops }

// DataDir returns the data directory.
func (s *Server) DataDir() string { return s.dataDir }

// Feed returns the server's standard input. A write waits while the server has no room for
// more; closing it ends the ledger, not the server.
func (s *Server) Feed() *os.File { return s.feed }

// Said returns what the server has written to its standard error.
func (s *Server) Said() string { return s.Err.String() }

// Stop ends the process with SIGTERM and waits for it. A process that does not end in time is
// killed. An exit code other than 0, or anything said to standard error, is an error; but for a word about
// a slow disk, which is the machine's.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := s.Process.Stop(ctx, syscall.SIGTERM)
	switch code := s.State().ExitCode(); {
	case err == nil && code != 0:
		err = s.Failure(fmt.Sprintf("ledgerd ended with exit code %d", code))
	case err == nil && complaints(s.Said()) != "":
		err = s.Failure("ledgerd had something to say")
	}
	s.Kill()
	return err
}

// slowDisk is in what ledgerd says of a disk that took long.
const slowDisk = "the disk took long to sync"

// complaints returns the lines that say something of ledgerd itself.
func complaints(said string) (about string) {
	for line := range strings.Lines(said) {
		if !strings.Contains(line, slowDisk) {
			about += line
		}
	}
	return about
}

// Kill ends the process at once, if it still runs, and waits for it.
func (s *Server) Kill() {
	if s.Process != nil {
		s.Process.Kill()
	}
	s.ending.Do(func() {
		s.client.CloseIdleConnections()
		if s.feed != nil {
			_ = s.feed.Close()
		}
		if s.made {
			_ = os.RemoveAll(s.dataDir)
		}
	})
}
