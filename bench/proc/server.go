package proc

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options say where a server lives. The zero value works.
type Options struct {
	Dir     string // where data directories are made; "": the system's place for such
	DataDir string // the data directory itself, which is kept at the end; "": one is made in Dir
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
	made     bool        // the data directory is ours
	ended    atomic.Bool // by Stop or Kill
	url, ops string
	client   *http.Client
}

// Start starts the program as `ledgerd serve` and waits until it listens. It follows its
// standard input, knows no rate limits and no caps for clients of this machine, and logs
// warnings; args come behind and may say otherwise. The process ends at the latest with ctx.
func Start(ctx context.Context, program string, args []string, o Options) (s *Server, err error) {
	s = &Server{
		dataDir: o.DataDir,
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableCompression: true}, Timeout: readyTimeout},
	}
	defer func() {
		if err != nil {
			s.Kill()
			s, err = nil, fmt.Errorf("cannot start ledgerd: %w", err)
		}
	}()
	if s.dataDir == "" {
		if s.dataDir, err = os.MkdirTemp(o.Dir, "ledgerd-bench-"); err != nil {
			return s, err
		}
		s.made = true
	}
	stdin, feed, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer stdin.Close()
	s.feed = feed
	if raw, err := feed.SyscallConn(); err == nil { // a smaller pipe works, with more turns between its ends
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
	// No flag of the caller's own ledgerd is one of this.
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEDGERD_") })
	environment = append(environment, "LEDGERD_RATE_LIMIT_EXEMPT=127.0.0.0/8") // unless the arguments say otherwise: a list is given once
	const anyPort = "127.0.0.1:0"
	words := slices.Concat([]string{
		program, "serve", "--source", "file:-", "--data-dir", s.dataDir, "--listen", anyPort, "--ops-listen", anyPort,
		"--rate-limit-minute", "0", "--rate-limit-hour", "0", "--log-level", "warn",
	}, args)
	if s.Process, err = Launch(ctx, Command{Words: words, Env: environment, Stdin: stdin}); err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	m, err := s.Await(ctx, Addresses)
	if err == nil {
		s.url, s.ops = m[1], m[2]
	}
	return s, err
}

// Addresses finds the base addresses of both listeners in what ledgerd prints once it listens: URL, OpsURL.
var Addresses = regexp.MustCompile(`REST +(https?://\S+/api)/status(?s:.*)operators +(https?://\S+)/metrics`)

// Ready waits until the server answers questions, and fails if it ends before. A server on an
// empty data directory needs base state and the first block for that, so the feed comes before.
func (s *Server) Ready(ctx context.Context) error {
	err := s.Until(ctx, readyTimeout, time.Millisecond, func(ctx context.Context) error {
		_, err := getOK(ctx, s.client, s.ops+"/readyz")
		return err
	})
	if err != nil {
		return fmt.Errorf("ledgerd is not ready: %w", err)
	}
	return nil
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

// getOK is Get of what must be there.
func getOK(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	status, body, err := Get(ctx, client, address)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d: %s", status, body)
	}
	return body, err
}

// URL returns the base address of the public listener: http://HOST:PORT/api.
func (s *Server) URL() string { return s.url }

// StreamURL returns the address to subscribe at: ws://HOST:PORT/api/ws/accounts.
func (s *Server) StreamURL() string {
	return "ws" + strings.TrimPrefix(s.url, "http") + "/ws/accounts"
}

// Feed returns the server's standard input. A write waits while the server has no room for
// more; closing it ends the ledger, not the server.
func (s *Server) Feed() *os.File { return s.feed }

// Stop ends the process with SIGTERM and waits for it. A process that does not end in time is
// killed. An exit code other than 0, or anything said to standard error, is an error; but for a word about
// a slow disk, which is the machine's. A server that was stopped or killed before is left alone.
func (s *Server) Stop() error {
	if s.ended.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := s.Process.Stop(ctx, syscall.SIGTERM)
	if err == nil && (s.State().ExitCode() != 0 || complaints(s.Err.String()) != "") {
		err = s.Failure(fmt.Sprintf("ledgerd ended with %v and had something to say", s.State()))
	}
	s.Kill()
	return err
}

// slowDisk is what ledgerd says of a disk that took long.
var slowDisk = regexp.MustCompile(`.*the disk took long to sync.*\n?`)

// complaints returns the lines that say something of ledgerd itself.
func complaints(said string) string { return slowDisk.ReplaceAllString(said, "") }

// Kill ends the process at once, if it still runs, and waits for it.
func (s *Server) Kill() {
	if s.Process != nil {
		s.Process.Kill()
	}
	if s.ended.Swap(true) {
		return
	}
	s.client.CloseIdleConnections()
	if s.feed != nil {
		_ = s.feed.Close()
	}
	if s.made {
		_ = os.RemoveAll(s.dataDir)
	}
}
