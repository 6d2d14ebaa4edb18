package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The info string of a block of commands says how it is run: "sh" as it stands; "sh server" does not end by itself, and goes on beside what
// follows, in place of the server before; "sh stopped" once the server has ended; "sh no-run: reason" not at all. A block of JSON
// right after one of a single command has the shape of its output.

// fence is a block of a page.
type fence struct {
	info, text string
	follows    bool // comes right after the block before
}

// fences returns the blocks of a page.
func fences(content string) (all []fence) {
	for after, rest := false, content; rest != ""; {
		var line string
		if line, rest, _ = strings.Cut(rest, "\n"); !strings.HasPrefix(line, "```") {
			after = false
			continue
		}
		text, more, _ := strings.Cut(rest, "```\n")
		all = append(all, fence{strings.TrimPrefix(line, "```"), text, after})
		after, rest = true, more
	}
	return all
}

// looksTyped finds a line that a person would type, in a block that nobody runs.
var looksTyped = regexp.MustCompile(`(?m)^    (\$ |bin/|curl |make |ledgerd|LEDGERD_)`)

// inNetwork in the environment makes the test binary turn into a shell, in a network of its own that has the loopback device alone.
const inNetwork = "LEDGERD_TEST_IN_NETWORK"

// becomeShell is what the test binary does then.
func becomeShell(shell string) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("cannot raise lo: %w", err)
	}
	words := strings.Fields(shell)
	path, err := exec.LookPath(words[0])
	if err != nil {
		return err
	}
	return unix.Exec(path, words, append(os.Environ(), "PS1=", "PS2="))
}

// session is a shell as a person uses it: interactive, so that zsh takes # for a word. Its processes end with it.
type session struct {
	*testing.T
	dir  string
	in   io.Writer
	out  *bufio.Reader
	errs bytes.Buffer
}

// openSession starts a shell in a folder of its own, with the ports of the manual free for it.
func openSession(t *testing.T, shell, dir string) *session {
	t.Helper()
	s := &session{T: t, dir: dir}
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env, c.Dir, c.Stderr = append(os.Environ(), inNetwork+"="+shell, undebugged), dir, &s.errs
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
	in, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	must(t, errors.Join(err, err2))
	if err := c.Start(); errors.Is(err, fs.ErrPermission) {
		t.Skipf("this machine allows no network of one's own, and the ports of the manual may be in use: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	s.in, s.out = in, bufio.NewReader(out)
	late := time.AfterFunc(2*patience, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = c.Process.Kill() // and with the first process of their namespace all others
		_ = c.Wait()
	})
	return s
}

// run types a line and returns what it prints. It fails the test if that goes wrong.
func (s *session) run(line string) (printed string) {
	s.Helper()
	const done = "that was it:"
	_, _ = fmt.Fprintf(s.in, "%s\nprintf '\\n%s %%s\\n' $?\n", line, done) // a shell that is gone prints nothing
	for {
		text, err := s.out.ReadString('\n')
		if status, ended := strings.CutPrefix(text, done); err != nil || ended && status != " 0\n" {
			server, _ := os.ReadFile(filepath.Join(s.dir, "server.log"))
			s.Fatalf("%s\nstatus%s, %v; it printed\n%s\nthe session says\n%s\nand the server\n%s", line, strings.TrimSuffix(status, "\n"), err, printed, s.errs.Bytes(), server)
		} else if ended {
			return strings.TrimSuffix(printed, "\n")
		}
		printed += text
	}
}

// stop ends the server, if there is one.
func (s *session) stop() {
	s.run(`if [ -n "$server" ]; then kill "$server"; wait "$server"; server=; fi; true`)
}

// serve starts a server and waits until it is ready.
func (s *session) serve(command string) {
	s.stop()
	s.run(strings.TrimSpace(command) + " >server.log 2>&1 & server=$!")
	const ops = `$(sed -n 's,.*\(http.*\)/metrics.*,\1,p' server.log)` // as the banner tells
	s.run("until curl -sf " + ops + "/readyz >readyz; do kill -0 $server || break; sleep 0.1; done; kill -0 $server")
}

// follow runs the commands of a page in order.
func (s *session) follow(blocks []fence) {
	for i, b := range blocks {
		kind, how, _ := strings.Cut(b.info, " ")
		switch {
		case kind != "sh" || strings.HasPrefix(how, "no-run: "):
			continue
		case how == "server":
			s.serve(b.text)
			continue
		case how == "stopped":
			s.stop()
		case how != "":
			s.Errorf("nobody knows how to run %q", b.info)
		}
		lines := strings.Split(strings.TrimSpace(b.text), "\n")
		for _, line := range lines {
			printed := s.run(line)
			if next := i + 1; len(lines) == 1 && next < len(blocks) && blocks[next].follows && blocks[next].info == "json" {
				s.alike(line, printed, blocks[next].text)
			} else if strings.Contains(printed, `{"error":`) {
				s.Errorf("%s is answered with %s", line, printed)
			}
		}
	}
}

// alike compares the shape of a JSON answer with what the page shows.
func (s *session) alike(line, printed, page string) {
	var got, want any
	if err := errors.Join(json.Unmarshal([]byte(printed), &got), json.Unmarshal([]byte(page), &want)); err != nil {
		s.Errorf("%s: %v, in %s", line, err, printed)
	} else if !reflect.DeepEqual(shape(got), shape(want)) {
		s.Errorf("%s prints\n%s\nthe page shows\n%s", line, printed, page)
	}
}

// shape returns a JSON value with kinds in place of what is no object or list, and lists cut to one.
func shape(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = shape(v[name])
		}
	case []any:
		if len(v) > 0 {
			return []any{shape(v[0])}
		}
	default:
		return fmt.Sprintf("%T", v)
	}
	return v
}

// undebugged has programs linked without what debuggers read, in half the time.
const undebugged = "GOFLAGS=-ldflags=-w"

// The commands of the README and the manual do what they say as they are printed, in bash and in zsh, for one who has built the
// programs; where a page does not start a server itself, make run has been typed before.
func TestCommandsOfTheManualRunAsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("the programs are built without the race detector: make test")
	}
	t.Parallel()
	built := t.TempDir()
	const build = `tar -C ../.. --exclude ./.git --exclude ./bin --exclude ./data --exclude node_modules -cf - . | tar -C "$0" -xf - && ` + undebugged + ` make -C "$0" build`
	output(t, ".", "sh", "-c", build, built)
	var recorded bytes.Buffer
	z := gzip.NewWriter(&recorded)
	_, _ = z.Write([]byte(`{"slot":7,"parentSlot":6,"blockhash":"` + toolKey("block").String() + `","transactions":[]}`))
	_ = z.Close()
	must(t, os.WriteFile(filepath.Join(built, "block.json.gz"), recorded.Bytes(), 0o644))
	const mostUnrun = 12 // commands
	unrun := 0
	for number, page := range manualPages(t) {
		content := readFile(t, page)
		if typed := looksTyped.Find(content); typed != nil {
			t.Errorf("%s: the command at %q stands in no block of sh", page, typed)
		}
		blocks, runs, serves := fences(string(content)), false, false
		for _, b := range blocks {
			if reason, no := strings.CutPrefix(b.info, "sh no-run: "); no && reason == "make openapi runs them" {
				continue
			} else if no && reason != "" {
				unrun += strings.Count(b.text, "\n")
			} else if kind, how, _ := strings.Cut(b.info, " "); kind == "sh" {
				serves = serves || !runs && how == "server"
				runs = true
			}
		}
		for i, shell := range []string{"bash --norc -i", "zsh -f -i +o promptsp"} {
			name, _, _ := strings.Cut(shell, " ")
			if !runs || os.Getenv("LEDGERD_GENERATORS") == "" && (number+i)%2 == 0 {
				continue // make test runs each page in one shell, make openapi in both
			}
			t.Run(filepath.Base(page)+"/"+name, func(t *testing.T) {
				t.Parallel()
				needs(t, name)
				dir := filepath.Join(t.TempDir(), "ledgerd")
				output(t, ".", "cp", "-al", built, dir)
				s := openSession(t, shell, dir)
				if !serves {
					s.serve("bin/ledgerd serve --rpc-listen 127.0.0.1:8899 --source sim:pools=16 --data all --index-mints")
					s.run("until curl -sf 'localhost:8080/api/blocks/latest?min_slot=6&wait_ms=2000'; do sleep 0.5; done")
				}
				s.follow(blocks)
			})
		}
	}
	if unrun > mostUnrun {
		t.Errorf("%d commands are not run, more than %d", unrun, mostUnrun)
	}
}
