package main

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
)

// After SIGTERM a node with --drain goes on but for /readyz; after SIGINT, and without it, it stops.
func TestDrainGoesOnUntilBalancersKnow(t *testing.T) {
	t.Parallel()
	v := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=100,slot_time=20ms", "--drain", "1h").listened().ready()
	socket := openSocket(t, v.base, "")
	v.Signal(syscall.SIGTERM)
	v.errs.await(t, `msg="draining.* drain=1h`)
	for url, want := range map[string]int{v.ops + "/readyz": 503, v.ops + "/livez": 200, v.base + "/blocks/latest": 200, v.base + "/health": 503} {
		status, body := get(t, url)
		ledgertest.Equal(t, status, want, "%s while the node drains: status of %s", url, body)
	}
	for _, s := range []*websocket.Conn{socket, openSocket(t, v.base, "")} {
		for range 100 { // more than was on its way
			_, _, err := s.ReadMessage()
			ledgertest.Must(t, err)
		}
	}
	v.Signal(syscall.SIGTERM) // a second one ends it at once
	<-v.Gone()

	for drain, sent := range map[string]syscall.Signal{"1h": syscall.SIGINT, "10ms": syscall.SIGTERM} {
		v := launch(t, "--data-dir", t.TempDir(), "--source", "sim:accounts=100", "--drain", drain).listened().ready()
		v.Signal(sent)
		v.errs.await(t, "msg=stopped")
	}
	toolSays(t, exitUsage, "--drain must not be negative", "serve", "--drain=-1s")
}

// SIGHUP takes over limits, caps, exemptions, origins and keys, and says so; what takes a restart it says each time.
func TestReloadTakesLimitsExemptionsAndOrigins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config, keys := dir+"/ledgerd.yaml", dir+"/keys.yaml"
	write := func(path, content string) { ledgertest.Must(t, os.WriteFile(path, []byte(content), 0o600)) }
	write(keys, "tiers: {gold: {}}\n")
	const always = "listen: 127.0.0.1:0\nops-listen: 127.0.0.1:0\nsource: sim:slot_time=20ms\n"
	write(config, always+"data-dir: "+dir+"/data\napi-keys: "+keys+"\nrate-limit-minute: 0\nrate-limit-hour: 0\n")
	binary, err := os.Executable()
	ledgertest.Must(t, err)
	v := launchWords(t, binary, "serve", "--config", config).listened().ready()
	key, _, _ := tool(t, "key", "new", "alice", "--tier", "gold", "--api-keys", keys)
	reload := func(says, settings string) {
		t.Helper()
		write(config, always+"data-dir: "+dir+"/data\napi-keys: "+keys+"\n"+settings)
		v.Signal(syscall.SIGHUP)
		v.errs.await(t, says)
	}
	limit := func(fields ...string) (limit string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base+"/health", http.NoBody)
		ledgertest.Must(t, err)
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		ledgertest.Must(t, err)
		defer answer.Body.Close()
		return answer.Header.Get("X-RateLimit-Limit")
	}
	open := func(origin string) int {
		s, answer, err := websocket.DefaultDialer.Dial(streamURL(v.base), http.Header{"Origin": {origin}})
		if err == nil {
			t.Cleanup(func() { s.Close() })
		}
		return answer.StatusCode
	}
	ledgertest.Equal(t, limit(), "0", "the limit at the start")
	reload(`keys=1 changed="?\[rate-limit-minute: 50 rate-limit-hour: 900 ws-origins: \[https://a.example\]\]`, "rate-limit-minute: 50\nrate-limit-hour: 900\nws-origins: https://a.example\nretain-slots: 7\n")
	v.errs.await(t, "take a restart\" flags=\\[retain-slots\\]")
	ledgertest.Equal(t, limit(), "50", "the limit")
	ledgertest.Equal(t, limit("X-API-Key", key[:len(key)-1]), "50", "the limit of a key whose tier has none of its own")
	ledgertest.Equal(t, [2]int{open("https://a.example"), open("https://b.example")}, [2]int{101, 400}, "the answers to two origins")
	for query, want := range map[string]string{"": "this path is a WebSocket", "?commitment=final": "commitment"} {
		status, why := get(t, v.base+"/ws/accounts"+query)
		ledgertest.Equal(t, [2]any{status, strings.Contains(string(why), want)}, [2]any{400, true}, "a plain request with %q is answered %s", query, why)
	}
	for setting, status := range map[string]int{"max-sockets": 503, "max-sockets-per-client": 429} {
		reload(`changed="?\[.*`+setting+": 1[] ]", "rate-limit-minute: 50\nrate-limit-hour: 900\nretain-slots: 7\n"+setting+": 1\n")
		ledgertest.Equal(t, open("https://a.example"), status, "the answer to a second socket with %s of 1", setting)
		told, why := get(t, v.base+"/ws/accounts")
		ledgertest.Equal(t, told, status, "the status of a plain request, which is answered %s", why)
	}
	reload(`changed="?\[rate-limit-exempt: \[127.0.0.0/8\] .*\](?s:.*)flags=\[retain-slots\]`, "rate-limit-minute: 50\nrate-limit-hour: 900\nrate-limit-exempt: 127.0.0.0/8\nretain-slots: 7\n")
	ledgertest.Equal(t, limit(), "0", "the limit of who is exempt")
	ledgertest.Equal(t, open("https://b.example"), 101, "the answer to any origin")
	write(keys, "tiers: [")
	reload("nothing is reloaded", "rate-limit-minute: 1\nrate-limit-hour: 900\n")
	ledgertest.Equal(t, limit(), "0", "the limit after a reload that failed")
}
