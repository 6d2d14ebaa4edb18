package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger"
	"ledgerd/engine/ledger/datatest"
	"ledgerd/engine/ledger/ledgertest"
	"ledgerd/engine/source/upstream"
)

// F27, F28: an answer that is garbage, too large, cut or silent is an error of its kind, and tells no secret. An entry of
// testdata/errors.txt is a name, the status and the body of an answer, a header or none, and the kind and the error.
func TestErrorsOfCallsAreToldApart(t *testing.T) {
	const number, garbled = `{"jsonrpc":"2.0","id":1,"result":7}`, "garbage: getBlock: the answer is not what was asked for"
	const unreachable = "unreachable"
	type test struct {
		answer answer
		want   string // the kind and the error
	}
	tests := map[string]test{
		"too long, said":         {says(200, strings.Repeat(" ", 5000)), "too_large: getBlock: the answer is too large: it is too long"},
		"too long, chunked":      {streamSpaces, "too_large: getBlock: the answer is too large: it is too long"},
		"too long when unpacked": {zipped(strings.Repeat(" ", 1<<20), slices.Clone), "too_large: getBlock: the answer is too large: it is too long"},
		"cut gzip":               {zipped(number, func(b []byte) []byte { return b[:len(b)-9] }), "closed: getBlock: the connection ended before the answer"},
		"gzip of nothing":        {zipped(number, func(b []byte) []byte { return b[:5] }), "closed: getBlock: the connection ended before the answer"},
		"wrong sum in gzip":      {zipped(number, func(b []byte) []byte { b[len(b)-6]++; return b }), garbled},
		"damaged gzip":           {zipped(number, func(b []byte) []byte { b[10] = 0xff; return b }), garbled},
		"hung up":                {hangsUp, "closed: getBlock: the connection ended before the answer"},
		"silence":                {isSilent, "stalled: getBlock: the node did not answer in time"},
		unreachable:              {nil, "dial: getBlock: the node cannot be reached"},
	}
	for _, lines := range datatest.Entries(t, "errors.txt") {
		status, body, _ := strings.Cut(lines[1], " ")
		code, err := strconv.Atoi(status)
		must(t, err)
		header := strings.Replace(strings.Join(lines[2:len(lines)-1], ""), ": ", " ", 1)
		tests[lines[0]] = test{with(header, says(code, body)), strings.TrimPrefix(lines[len(lines)-1], "> ")}
	}
	for name, tt := range tests {
		c := Config{MaxBlock: 4096}
		if name == unreachable {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("dial tcp node.example:8899: secret")
			}
		}
		play(t, c, func(t *testing.T, n *fakeNode, s *Source) {
			n.fault = tt.answer
			_, err := s.client.block(t.Context(), 7)
			g := s.Upstream()
			kind := upstream.Kind(slices.Index(g.Errors[:], 1))
			if got := fmt.Sprintf("%v: %v", kind, err); got != tt.want {
				t.Fatalf("%s: counted %v, %s, want %s", name, g.Errors, got, tt.want)
			}
			for _, secret := range []string{"secret", "path-key", "node.example", "\n"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s: the error shows %q: %v", name, secret, err)
				}
			}
		})
	}
}

// A node is known by authorities of a file, and sent headers of files that are read for each call. Where they cannot be read nothing is sent.
func TestFilesSayWhomTheNodeIsAndWhatItIsSent(t *testing.T) {
	var got []string
	node := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, fmt.Sprint(r.Header["X-Token"], r.Header["Authorization"], r.Header["User-Agent"], r.URL))
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":7}`, len(got))
	}))
	defer node.Close()
	file := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	token, header := file("token", []byte("first")), file("header", []byte("Authorization: Bearer b\nauthorization: c\nUser-Agent: d"))
	ca := file("ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: node.Certificate().Raw}))
	c, err := ParseSpec(node.URL + "/?token=theirs&token-file=" + token + "&header-file=" + header + "&tls-ca=" + ca)
	must(t, err)
	s := New(c)
	defer s.CloseIdle()
	for _, content := range []string{"s3cret\n", "other", ""} {
		must(t, os.WriteFile(token, []byte(content), 0o600))
		_, err = s.client.slot(t.Context(), ledger.Confirmed)
	}
	ledgertest.Equal(t, strings.Join(got, " "), "[s3cret] [Bearer b c] [d] /?token=theirs [other] [Bearer b c] [d] /?token=theirs", "what the node got")
	ledgertest.ErrorSays(t, err, "getSlot: the call cannot be sent: the file that token-file names is empty", "the last call")
	ledgertest.Contains(t, s.Trouble(), "the source is not connected since ", "the trouble")
	_, err = ParseSpec(strings.ReplaceAll(c.URL.String(), "theirs", "x&token-file="+token))
	ledgertest.ErrorSays(t, err, "is empty", "an empty file")
}

// A node that is not reached because of a certificate, a protocol or a name is told with that, and without its address.
func TestWhyANodeIsNotReached(t *testing.T) {
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":7}`) })
	encrypted, strict, plain, gone := httptest.NewTLSServer(answers), httptest.NewUnstartedServer(answers), httptest.NewServer(answers), httptest.NewServer(answers)
	strict.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	strict.StartTLS()
	gone.Close()
	for _, node := range []*httptest.Server{encrypted, strict, plain} {
		node.Config.ErrorLog = log.New(io.Discard, "", 0)
		defer node.Close()
	}
	known := x509.NewCertPool()
	known.AddCert(encrypted.Certificate())
	for name, tt := range map[string]struct {
		address string
		tls     *tls.Config
		want    string
	}{
		"authority":   {encrypted.URL, &tls.Config{}, "its certificate is of an authority that is not known here"},
		"name":        {encrypted.URL, &tls.Config{RootCAs: known, ServerName: "other.example"}, "its certificate is for another name"},
		"time":        {encrypted.URL, &tls.Config{RootCAs: known, Time: func() time.Time { return time.Unix(1<<33, 0) }}, "its certificate has run out, or does not hold yet"},
		"no TLS":      {strings.Replace(plain.URL, "http:", "https:", 1), &tls.Config{}, "it does not speak TLS"},
		"certificate": {strict.URL, &tls.Config{RootCAs: known}, "it turns TLS down, as where it asks for a certificate"},
		"nobody":      {gone.URL, &tls.Config{}, "nobody listens there"},
		"no address":  {"http://node.invalid", &tls.Config{}, "its name has no address"},
	} {
		address, err := url.Parse(tt.address)
		must(t, err)
		c := Config{URL: address, TLS: tt.tls}
		if name == "no address" {
			c.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.DNSError{Err: "no such host", Name: "node.invalid", IsNotFound: true}
			}
		}
		s := New(c)
		_, err = s.client.slot(t.Context(), ledger.Confirmed)
		ledgertest.Equal(t, fmt.Sprint(err), "getSlot: the node cannot be reached: "+tt.want, name)
		s.CloseIdle()
	}
}

func hangsUp(*fakeCall) bool { panic(http.ErrAbortHandler) }

func isSilent(c *fakeCall) bool {
	c.ResponseWriter.(http.Flusher).Flush()
	time.Sleep(time.Minute)
	return true
}

// zipped returns a body in gzip, spoilt by a function, and the header that says so.
func zipped(body string, spoil func([]byte) []byte) answer {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, body)
	z.Close()
	return with("Content-Encoding gzip", says(200, string(spoil(packed.Bytes()))))
}

func streamSpaces(c *fakeCall) bool {
	for range 50 {
		fmt.Fprint(c, strings.Repeat(" ", 100))
		c.ResponseWriter.(http.Flusher).Flush()
	}
	return true
}

func TestSpecifications(t *testing.T) {
	for spec, tt := range map[string]struct {
		url  string
		want Config
	}{
		"http://127.0.0.1:8899":                            {"http://127.0.0.1:8899", Config{}},
		"https://node.example/key?api-key=x&accounts=none": {"https://node.example/key?api-key=x", Config{Accounts: AccountsNone}},
		"http://u:p@node.example/?from=7&accounts=new":     {"http://u:p@node.example/", Config{Accounts: AccountsNew, From: ledger.Some(ledger.Slot(7))}},
		"http://[::1]:8899?details=accounts&b=2":           {"http://[::1]:8899?b=2", Config{Brief: true}},
		"http://h?details=full&accounts=touched&from=0":    {"http://h", Config{From: ledger.Some(ledger.Slot(0))}},
	} {
		c, err := ParseSpec(spec)
		must(t, err)
		tt.want.URL, _ = url.Parse(tt.url)
		ledgertest.Equal(t, c, tt.want, "%s", spec)
	}
}

func TestListsThatCannotBeAreRefused(t *testing.T) {
	play(t, Config{}, func(t *testing.T, n *fakeNode, s *Source) {
		for _, wrong := range []string{"[12,11]", "[11,11]", "[9]", "[10,11,12]", "[1152921504606846977]", "null"} {
			n.fault = gives(wrong)
			if got, err := s.client.slots(t.Context(), 10, 2, ledger.Confirmed); err == nil || causeOf(err) != garbage {
				t.Errorf("%s: %v, err = %v", wrong, got, err)
			}
		}
	})
}

// A block at the beginning of an epoch had some 3,000,000 elements in 80 MiB: it is read where a person says that so much may come.
func TestALargeBlockIsReadWhereItMayBe(t *testing.T) {
	const elements, elementBytes = 3_000_000, 28
	for spec, want := range map[string]error{"http://node.example": errTooLong, "http://node.example?max-block=128": nil} {
		c, err := ParseSpec(spec)
		must(t, err)
		text := io.LimitReader(repeated("{"+strings.Repeat(" ", elementBytes-1)), elements*elementBytes)
		node := &client{large: make(chan struct{}, 1)}
		_, leave, err := node.readBody(t.Context(), text, c.withDefaults().MaxBlock)
		leave()
		ledgertest.ErrorIs(t, err, want, "%s", spec)
	}
}

// repeated is a text without end.
type repeated string

func (r repeated) Read(p []byte) (n int, err error) {
	for n+len(r) <= len(p) {
		n += copy(p[n:], r)
	}
	return n + copy(p[n:], r[:len(p)-n]), nil
}
