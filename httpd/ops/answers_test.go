package ops

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/ledgertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestOperatorsAreAnswered asks each line of the scenes in testdata, METHOD PATH | FIELD: VALUE | ..., on a connection of its own and holds what comes
// back to the line below, which go test -update writes: the status, the fields that differ from answer to answer, and the body. A version may follow the
// path; a line with xN at its end is asked N times, and answered alike. {own} is the name of this machine. Every file that is opened is closed.
func TestOperatorsAreAnswered(t *testing.T) {
	own, err := os.Hostname()
	ledgertest.Must(t, err)
	ledgertest.Scenes(t, "testdata/*.txt", "== ", *update, func(t *testing.T, scene string) string {
		name, lines, _ := strings.Cut(scene, "\n")
		n := &node{ln: fasthttputil.NewInmemoryListener()}
		s := New(Config{
			Status: n.status, Trouble: func() string { return n.trouble }, Snapshot: n.snapshot, Name: "node-1.prod.example",
			WriteMetrics: func(w io.Writer) { _, _ = io.WriteString(w, "ledgerd_up 1\n") },
			Backup:       func() (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader("whole!")), 6, nil },
		})
		scenes[name](s, n)
		run(t, s, n.ln)
		var got strings.Builder
		fmt.Fprintln(&got, "==", name)
		for line := range strings.SplitSeq(lines, "\n") {
			asked := askedLine.FindStringSubmatch(strings.ReplaceAll(line, "{own}", own))
			switch {
			case asked != nil:
				times, _ := strconv.Atoi(cmp.Or(asked[5], "1"))
				answer := n.answer(t, asked[1], asked[2], cmp.Or(asked[3], "HTTP/1.1"), asked[4])
				for range times - 1 {
					ledgertest.Equal(t, n.answer(t, asked[1], asked[2], "HTTP/1.1", asked[4]), answer, "%s again", line)
				}
				fmt.Fprintf(&got, "%s\n%s\n", line, answer)
			case line == "" || line[0] == '#':
				fmt.Fprintln(&got, line)
			}
		}
		n.open.Wait()
		return got.String() + "\n"
	})
}

var askedLine = regexp.MustCompile(`^([A-Z]+) (/\S*)(?: (HTTP/\S+))?((?: \| [^|]*?)*)(?: x(\d+))?$`)

// node is what a scene has the operators ask.
type node struct {
	ln      *fasthttputil.InmemoryListener
	state   ledger.NodeStatus
	trouble string
	fails   bool
	open    sync.WaitGroup // for each file
}

// scenes are the nodes.
var scenes = map[string]func(s *Server, n *node){
	"ready":                  func(*Server, *node) {},
	"degraded":               func(_ *Server, n *node) { n.state.Degraded = `"a" is damaged` },
	"unhealthy":              func(_ *Server, n *node) { n.state.Unhealthy = "the source has stalled for 12s" },
	"ready, with trouble":    func(_ *Server, n *node) { n.trouble = "no answer of 10.0.0.1" },
	"degraded, with trouble": func(_ *Server, n *node) { n.state.Degraded, n.trouble = `"a" is damaged`, "no answer of 10.0.0.1" },
	"unhealthy, with trouble": func(_ *Server, n *node) {
		n.state.Unhealthy, n.trouble = "behind the shared log", "no answer of 10.0.0.1"
	},
	"a fault":  func(_ *Server, n *node) { n.fails = true },
	"profiles": func(s *Server, _ *node) { s.config.Pprof = true },
	"TLS":      func(s *Server, _ *node) { s.config.TLS = new(tls.Config) }, // the certificate names the node, so no other name leads to it
	"all accounts": func(s *Server, _ *node) {
		s.config.State = func(bool) (io.ReadCloser, int64, error) { return io.NopCloser(strings.NewReader("{}\n")), -1, nil }
	},
}

func (n *node) status() ledger.NodeStatus {
	if n.fails {
		panic("a fault of the test's own")
	}
	return n.state
}

// file is a file that is awaited while it is open.
type file struct {
	*strings.Reader
	open *sync.WaitGroup
	size error
}

func (f *file) Size() (int64, error) { return f.Reader.Size(), f.size }
func (f *file) Close() error         { f.open.Done(); return nil }

func (n *node) snapshot(name string) (File, error) {
	f := &file{strings.NewReader("0123456789"), &n.open, nil}
	switch name {
	case "broken":
		return nil, errors.New("a bad disk")
	case "unread":
		f.size = errors.New("a bad disk")
	case "a.state":
	default:
		return nil, fs.ErrNotExist
	}
	n.open.Add(1)
	return f, nil
}

// answer asks on a connection of its own, and returns what is told of the answer.
func (n *node) answer(t *testing.T, method, path, version, fields string) string {
	t.Helper()
	c, err := n.ln.Dial()
	ledgertest.Must(t, err)
	defer c.Close()
	if !strings.Contains(fields, "| Host: ") {
		fields += " | Host: ops"
	}
	_, err = fmt.Fprint(c, method, " ", path, " ", version, strings.ReplaceAll(fields, " | ", "\r\n"), "\r\n\r\n")
	ledgertest.Must(t, err)
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	ledgertest.Must(t, err)
	body, err := io.ReadAll(r.Body)
	ledgertest.Must(t, err)
	text := fmt.Sprint(strings.Join(append(r.TransferEncoding, strconv.Itoa(r.StatusCode)), " "), " ")
	for _, field := range [][2]string{{"Content-Type", "application/json"}, {"Content-Range", ""}, {"Cache-Control", "no-cache"}, {"Server", ""}, {"Allow", ""}} {
		if value := r.Header.Get(field[0]); value != field[1] {
			text += fmt.Sprintf("%s: %s; ", field[0], value)
		}
	}
	if strings.HasPrefix(path, "/debug/") && r.StatusCode == 200 {
		return text + "a profile"
	}
	return text + strings.ReplaceAll(strings.TrimSpace(string(body)), "\n", "\n  ")
}
