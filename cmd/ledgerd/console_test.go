package main

import (
	"bufio"
	"errors"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// browse runs one of the console's programs for a browser and calls said with each line that it prints, until it ends well.
func browse(t *testing.T, said func(line string, answer io.Writer), words ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("the race detector is for the node alone")
	}
	console := "../../httpd/console/"
	chromium, err := exec.LookPath("chromium")
	_, err2 := exec.LookPath("node")
	_, err3 := os.Stat(console + "node_modules")
	if err := errors.Join(err, err2, err3); err != nil {
		t.Skipf("the console is not tried: %v; it takes node, chromium, and npm ci in httpd/console", err)
	}
	words[0] = console + "test/" + words[0]
	p := startProgram(t, "CHROMIUM="+chromium, append([]string{"node"}, words...)...)
	defer p.Process.Kill() // where said has ended the test; it is gone otherwise
	for lines := bufio.NewScanner(p.out); lines.Scan(); {
		said(lines.Text(), p.in)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", words[0], err, p.Stderr)
	}
}

// A browser finds its way through the console, through forks, a kill of the node, and a budget that is used up.
func TestConsoleInABrowser(t *testing.T) {
	t.Parallel()
	source := "sim:seed=5,accounts=2000,tps=100,slot_time=100ms,fork_rate=0.08,skip_rate=0.1,finality=12"
	var to atomic.Pointer[string]
	random, _ := seededRand(t)
	c, dir := newCutter(t, random, 0, 0, func() string { return *to.Load() }), t.TempDir()
	start := func() *victim {
		v := launch(t, "--data-dir", dir, "--source", source, "--data", "all", "--rpc-listen", "127.0.0.1:0", "--index-mints").ready()
		address := hostOf(v.base)
		to.Store(&address)
		return v
	}
	node := start()
	limited := launch(t, "--data-dir", t.TempDir(), "--source", source, "--rate-limit-minute", "12").ready()
	large := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=2000").ready()
	small := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=300").ready()
	browse(t, func(line string, answer io.Writer) {
		switch t.Log(line); line {
		case "stop":
			node.Process.Signal(syscall.SIGSTOP)
		case "continue":
			node.Process.Signal(syscall.SIGCONT)
		case "kill":
			node.Kill()
		case "start":
			node = start()
		default:
			return
		}
		_, _ = answer.Write([]byte("done\n"))
	}, "console.mjs", c.address(), strings.TrimSuffix(limited.base, "/api"), balance(t, "/api/metrics", hostOf(large.base), hostOf(small.base)))
}

// balance returns the address of a balancer that sends the requests for a path to two nodes in turns, as haproxy's roundrobin does, and all others to the first.
func balance(t *testing.T, path string, nodes ...string) string {
	var asked atomic.Int64
	server := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		node := nodes[0]
		if r.In.URL.Path == path {
			node = nodes[asked.Add(1)%2]
		}
		r.SetURL(&url.URL{Scheme: "http", Host: node})
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(server.Close)
	return server.URL
}

// make screenshots runs this.
func TestConsoleScreenshots(t *testing.T) {
	folder := os.Getenv("LEDGERD_SCREENSHOTS")
	if folder == "" {
		t.Skip("LEDGERD_SCREENSHOTS names no folder for the pictures of the console")
	}
	node := launch(t, "--data-dir", t.TempDir(), "--source", "sim:fork_rate=0.08", "--snapshot-interval", "30s").ready()
	browse(t, func(line string, _ io.Writer) { t.Log(line) }, "screenshots.mjs", strings.TrimSuffix(node.base, "/api"), folder)
}
