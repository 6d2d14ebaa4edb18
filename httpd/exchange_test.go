package httpd

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/httpd/accesslog"
)

const (
	// second is what is sent behind a request: it must be executed never, or exactly once.
	second = "GET /api/blocks/latest HTTP/1.1\r\nHost: ledger\r\n\r\n"
	// last is a request that ends its connection.
	last = "GET /api/blocks/latest HTTP/1.1\r\nHost: ledger\r\nConnection: close\r\n\r\n"
)

// G8, G9, G10, G11, G12, F35, F36, F38: TestExchangesAreGolden sends each text of testdata/*.wire on a connection of its own to a server of its own, that
// of the scene, and holds what comes back, until the server ends it, to the lines below: the statuses, what is left to a client that has limits, how many
// questions the ledger was asked, and how long that took. Those lines are written by go test -update, and reviewed like code.
//
// A text is sent at once, and again in pieces of 1, 7 and 50 bytes, which is answered alike, but for what is long. With the sign | in it, it is sent in these packets alone.
// Behind "head " the fields of the answer are written too, behind "log " what the access log says. Behind "bad " what is sent is malformed: it is sent
// with a good request behind it, which is not executed, and again with 1 and 40 in front of it, which are answered.
// {NAME} and $[TEXT*N] are those of golden files; {next} is a request that asks the ledger, and {last} is one that ends its connection.
func TestExchangesAreGolden(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil))) // which is what the standard logger writes to, too
	ledgertest.Scenes(t, "testdata/*.wire", "== ", *update, func(t *testing.T, scene string) (got string) {
		bubbletest.Test(t, func(t *testing.T) { got = exchanges(t, scene) })
		return got
	})
	ledgertest.Equal(t, log.String(), "", "what is logged")
}

// exchanges plays a scene.
func exchanges(t *testing.T, scene string) string {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaners of the servers' workers have slept out
	name, lines, _ := strings.Cut(scene, "\n")
	var got strings.Builder
	fmt.Fprintln(&got, "==", name)
	for line := range strings.SplitSeq(lines, "\n") {
		if strings.HasPrefix(line, "< ") {
			continue
		}
		fmt.Fprintln(&got, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, text, known := strings.Cut(line, " ")
		if !known || !slices.Contains([]string{"head", "log", "bad"}, kind) {
			kind, text = "", line
		}
		text, err := strconv.Unquote(`"` + text + `"`)
		must(t, err)
		first, errors := "", 0
		for _, way := range waysOf(kind, expand(t, text)) {
			answers, counted := exchanged(t, name, kind, way)
			answers, errors = strings.TrimPrefix(answers, strings.Repeat("200; ", way.front)), errors+counted
			if first = cmp.Or(first, answers); answers != first {
				t.Errorf("%s\nis answered %s\nin %d packets and behind %d others %s", line, first, len(way.packets), way.front, answers)
			}
		}
		if kind == "bad" {
			first += fmt.Sprintf("; %d errors below HTTP", errors)
		}
		fmt.Fprintln(&got, "<", first)
	}
	return got.String() + "\n"
}

// way is how a text is sent: in packets, and behind so many requests that are answered.
type way struct {
	packets []string
	front   int
}

// waysOf returns the ways in which a text is sent.
func waysOf(kind, text string) (ways []way) {
	if kind == "bad" {
		for _, front := range []int{0, 1, 40} {
			packets := []string{strings.Repeat(second, front) + text + second}
			if strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n") {
				front = 0 // those in front of a bare line feed share its fate
			}
			ways = append(ways, way{packets, front})
		}
		return ways
	}
	if strings.Contains(text, "|") {
		return []way{{strings.FieldsFunc(text, func(c rune) bool { return c == '|' }), 0}}
	}
	const mostPackets = 1000 // a long text takes long in more
	for _, size := range []int{len(text) + 1, 1, 7, 50} {
		if len(text)/size > mostPackets {
			continue
		}
		var packets []string
		for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
			packets = append(packets, rest[:min(size, len(rest))])
		}
		ways = append(ways, way{packets, 0})
	}
	return ways
}

// exchanged sends packets on a connection and says what comes back, and how many errors below HTTP were counted.
func exchanged(t *testing.T, scene, kind string, w way) (answers string, errors int) {
	logged := ""
	h := servePipes(t, func(c *Config) {
		sceneOf(t, scene)(c)
		if c.Log = slog.Default(); kind == "log" {
			logged = t.TempDir() + "/access.log"
			c.AccessLog, _ = accesslog.Open(logged, c.Log)
		}
	})
	c, began := h.dial(""), time.Now()
	go func() {
		for _, packet := range w.packets {
			_, _ = io.WriteString(c, packet) // the server may have ended the connection
		}
	}()
	all, err := io.ReadAll(c)
	must(t, err)
	for len(all) > 0 {
		said := ""
		said, all = nextAnswer(t, all, kind == "head")
		answers += said + "; "
	}
	answers += fmt.Sprintf("%d asked after %v", h.ledger.asked.Load()-int64(w.front), time.Since(began))
	if log := h.server.config.AccessLog; log != nil {
		ended, end := context.WithCancel(t.Context())
		end()
		log.Run(ended)
		for line := range strings.Lines(string(readFile(t, logged))) {
			answers += "\n< " + strings.TrimSuffix(line, "\n")
		}
	}
	synctest.Wait()
	return answers, int(h.server.Counts.Errors.Load())
}

// momentary are the fields of an answer whose values are of the moment, or of the version.
var momentary = regexp.MustCompile(`^(Date|X-Ratelimit-(?:Remaining|Reset).*|Etag): .*`)

// nextAnswer says what the first of some answers is, and returns the others. One whose body is not there is that to a HEAD, or has none.
func nextAnswer(t *testing.T, all []byte, withFields bool) (said string, rest []byte) {
	t.Helper()
	_, behind, _ := bytes.Cut(all, []byte("\r\n\r\n"))
	method := "GET"
	if len(behind) == 0 || bytes.HasPrefix(behind, []byte("HTTP/1.1 ")) {
		method = "HEAD"
	}
	from := bufio.NewReader(bytes.NewReader(all))
	r := readReply(t, from, method)
	rest, err := io.ReadAll(from)
	must(t, err)
	said = fmt.Sprint(r.status)
	if method == "HEAD" && r.header.Get("Content-Length") != "" {
		said += " without a body"
	}
	if r.header.Get("X-RateLimit-Limit") > "0" {
		said += fmt.Sprintf(" with %s left", r.header.Get("X-RateLimit-Remaining"))
	}
	if r.closes {
		said += " closes"
	}
	if r.status >= 200 {
		checkEvery(t, said, r)
		if r.status >= 400 && r.body != "" {
			checkError(t, said, r)
		}
	}
	if withFields {
		var fields bytes.Buffer
		must(t, r.header.Write(&fields)) // sorted by name
		for field := range strings.SplitSeq(strings.TrimSpace(fields.String()), "\r\n") {
			said += ", " + momentary.ReplaceAllString(field, "$1")
		}
	}
	return said, rest
}
