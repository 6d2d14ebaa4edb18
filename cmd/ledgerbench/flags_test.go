package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ledgerd/engine/ledger/ledgertest"
)

// Where no rate meets what is asked, each was tried.
func TestSearchTriesEveryRate(t *testing.T) {
	t.Parallel()
	s := new(node)
	s.start(t)
	code, said := does(t, "load", s.url, "--ca", s.ca, "-d", "20ms", "--warmup", "0", "--path", "/ok", "--slo", "max=1ns", "--rate", "search", "--json", "-")
	var f figures
	err := json.Unmarshal(said.out.Bytes(), &f)
	if code != exitFailure || err != nil || len(f.Search) != 10 || !strings.Contains(said.err.String(), "no rate meets max=1ns") {
		t.Errorf("exit code %d, %v, %+v, said %q", code, err, f, &said.err)
	}
}

// Figures go to the standard output and text beside; of each second there is a line.
func TestLoadWritesForPrograms(t *testing.T) {
	t.Parallel()
	s := new(node)
	s.start(t)
	seconds := filepath.Join(t.TempDir(), "seconds.csv")
	code, said := does(t, "load", s.url, "--ca", s.ca, "-n", "30", "--path", "/ok", "--json", "-", "--csv", seconds)
	var f figures
	if err := json.Unmarshal(said.out.Bytes(), &f); code != exitOK || err != nil || f.Requests.OK != 30 || !strings.Contains(said.err.String(), "30 ok") {
		t.Errorf("exit code %d, %v, said %q and %q", code, err, &said.err, &said.out)
	}
	code, said = does(t, "load", s.url, "--ca", s.ca, "-n", "30", "--path", "/ok", "--csv", "-")
	if lines, err := csv.NewReader(&said.out).ReadAll(); code != exitOK || err != nil || len(lines) < 2 || !strings.Contains(said.err.String(), "30 ok") {
		t.Errorf("exit code %d, %v, said %q and %q", code, err, &said.err, lines)
	}
	content, err := os.ReadFile(seconds)
	must(t, err)
	lines, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	must(t, err)
	all := 0
	for _, line := range lines[1:] {
		n := 0
		_, err := fmt.Sscan(line[2], &n)
		must(t, err)
		all += n
	}
	if all != 30 || lines[0][2] != "responses" {
		t.Errorf("%d responses in\n%s", all, content)
	}
}

// The second in which a measurement ends has one line, not another for the responses that come after it.
func TestLoadWritesALineASecond(t *testing.T) {
	t.Parallel()
	s := &node{told: func(asked int) {
		if asked == 100 { // two of them look what is there
			time.Sleep(300 * time.Millisecond)
		}
	}}
	s.start(t)
	code, said := does(t, "load", s.url, "--ca", s.ca, "-d", "1s", "--rate", "100", "--warmup", "0", "--path", "/ok", "--csv", "-")
	if lines, err := csv.NewReader(&said.out).ReadAll(); code != exitOK || err != nil || len(lines) != 2 || lines[1][2] != "100" {
		t.Errorf("exit code %d, %v, said %q and %q", code, err, &said.err, lines)
	}
}

// A Unix socket stands for host and port: the host need not exist. HTTP/2 is spoken where that is asked for.
func TestLoadAsksOverAUnixSocket(t *testing.T) {
	t.Parallel()
	for flags, protocol := range map[string]string{"http://node.invalid": "HTTP/1.1", "http://node.invalid --http2": "HTTP/2.0", "https://node.invalid --insecure --http2": "HTTP/2.0"} {
		path := filepath.Join(t.TempDir(), "s")
		ln, err := net.Listen("unix", path)
		must(t, err)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ledgertest.Equal(t, r.Proto, protocol, "%s: the protocol", flags)
			new(node).ServeHTTP(w, r)
		}))
		must(t, server.Listener.Close())
		server.Listener, server.EnableHTTP2, server.Config.Protocols = ln, true, new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetHTTP2(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		if strings.HasPrefix(flags, "https") {
			server.StartTLS()
		} else {
			server.Start()
		}
		defer server.Close()
		args := append(strings.Fields("load "+flags), "--unix-socket", path, "--path", "/ok", "-n", "20")
		if code, s := does(t, args...); code != exitOK || !strings.Contains(s.out.String(), "20 ok") {
			t.Errorf("%s: exit code %d, said %q", flags, code, &s.err)
		}
	}
}
