package httpd

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger/bubbletest"
	"ledgerd/engine/ledger/ledgertest"
)

// G8, G9, G12, F35, F38: TestExchangesAreGolden sends each text of testdata/exchanges.wire on a connection of its own and holds what comes back, until
// the server ends it, to the line below: the statuses, how many questions the ledger was asked, and how long that took. Those lines are written
// by go test -update, and reviewed like code.
//
// A text is sent at once, and again in pieces of 1, 7 and 50 bytes, which is answered alike, but for what is long. With the sign | in it, it is sent in these packets alone.
// Behind "head " the fields of the answer are written too. {NAME} and $[TEXT*N] are those of golden files; {next} is a request that asks the
// ledger, and {last} is one that ends its connection.
func TestExchangesAreGolden(t *testing.T) { bubbletest.Test(t, exchangesAreGolden) }

func exchangesAreGolden(t *testing.T) {
	t.Cleanup(func() { time.Sleep(time.Minute) }) // until the cleaners of the servers' workers have slept out
	const file = "testdata/exchanges.wire"
	want := readFile(t, file)
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "< ") {
			continue
		}
		fmt.Fprintln(&got, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		text, withFields := strings.CutPrefix(line, "head ")
		text, err := strconv.Unquote(`"` + text + `"`)
		must(t, err)
		whole := ""
		for _, packets := range packetsOf(expand(t, strings.NewReplacer("{next}", second, "{last}", last).Replace(text))) {
			answers := exchanged(t, packets, withFields)
			if whole = cmp.Or(whole, answers); answers != whole {
				t.Errorf("%s\nis answered %s\nin %d packets %s", line, whole, len(packets), answers)
			}
		}
		fmt.Fprintln(&got, "<", whole)
	}
	ledgertest.Golden(t, file, got.String(), *update)
}

// packetsOf returns the ways in which a text is sent.
func packetsOf(text string) (ways [][]string) {
	if strings.Contains(text, "|") {
		return [][]string{strings.FieldsFunc(text, func(c rune) bool { return c == '|' })}
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
		ways = append(ways, packets)
	}
	return ways
}

// exchanged sends packets on a connection and says what comes back.
func exchanged(t *testing.T, packets []string, withFields bool) (answers string) {
	h := servePipes(t, nil)
	c, began := h.dial(""), time.Now()
	go func() {
		for _, packet := range packets {
			_, _ = io.WriteString(c, packet) // the server may have ended the connection
		}
	}()
	all, err := io.ReadAll(c)
	must(t, err)
	for len(all) > 0 {
		said := ""
		said, all = nextAnswer(t, all, withFields)
		answers += said + "; "
	}
	return fmt.Sprintf("%s%d asked after %v", answers, h.ledger.asked.Load(), time.Since(began))
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
	response, err := http.ReadResponse(from, &http.Request{Method: method})
	must(t, err)
	body, err := io.ReadAll(response.Body)
	must(t, err)
	rest, err = io.ReadAll(from)
	must(t, err)
	said = fmt.Sprint(response.StatusCode)
	if length := response.Header.Get("Content-Length"); method == "HEAD" && length != "" {
		said += " without a body"
	}
	if response.Close {
		said += " closes"
	}
	if response.StatusCode >= 200 {
		r := reply{status: response.StatusCode, header: response.Header, body: string(body)}
		checkEvery(t, said, r)
		if r.status >= 400 && r.body != "" {
			checkError(t, said, r)
		}
	}
	if withFields {
		var fields bytes.Buffer
		must(t, response.Header.Write(&fields)) // sorted by name
		for field := range strings.SplitSeq(strings.TrimSpace(fields.String()), "\r\n") {
			said += ", " + momentary.ReplaceAllString(field, "$1")
		}
	}
	return said, rest
}
