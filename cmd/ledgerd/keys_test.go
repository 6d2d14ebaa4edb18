package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"ledgerd/engine/ledger/ledgertest"
	clientlib "ledgerd/httpd/client"
)

// TestAPIKeys makes keys, asks and follows with them, and revokes one under a running node.
func TestAPIKeys(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "keys.yaml")
	tiers := "# Who pays.\ntiers:\n  gold: {requests_per_minute: 1000, requests_per_hour: 50, sockets: 30}\nkeys: # of customers\n"
	ledgertest.Must(t, os.WriteFile(file, []byte(tiers), 0o640))
	manage := func(want int, args ...string) (out, errs string) {
		t.Helper()
		out, errs, code := tool(t, append([]string{"key"}, append(args, "--api-keys", file)...)...)
		if code != want {
			t.Fatalf("key %q: exit %d, %s", args, code, errs)
		}
		return strings.TrimSpace(out), errs
	}
	alice, _ := manage(exitOK, "new", "alice", "--tier", "gold")
	bob, _ := manage(exitOK, "new", "bob", "--tier", "gold")
	for want, args := range map[string][]string{
		`there is no tier "silver"`: {"new", "carol", "--tier", "silver"}, `key "alice" is there twice`: {"new", "alice", "--tier", "gold"},
		"no key of that name": {"revoke", "carol"},
	} {
		if out, errs := manage(exitUsage, args...); out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: %s%s, want %q", args, out, errs, want)
		}
	}
	list, _ := manage(exitOK, "list")
	ledgertest.Equal(t, list, "NAME   TIER\nalice  gold\nbob    gold", "the list")
	content := readFile(t, file)
	if s := string(content); !strings.HasPrefix(s, tiers[:len("# Who pays.\n")]) || strings.Contains(s, alice) {
		t.Errorf("the file:\n%s", s)
	}

	for _, empty := range []string{"", "---\n", "null\n"} {
		other := filepath.Join(t.TempDir(), "empty.yaml")
		ledgertest.Must(t, os.WriteFile(other, []byte(empty), 0o600))
		toolSays(t, exitUsage, "write the tiers first", "key", "new", "dora", "--tier", "gold", "--api-keys", other)
	}

	// What remains is counted by the hour: on a busy machine a minute may turn meanwhile.
	v := launch(t, "--data-dir", filepath.Join(t.TempDir(), "data"), "--source", "sim:slot_time=20ms", "--rate-limit-minute", "1000", "--rate-limit-hour", "8", "--api-keys", file).listened()
	remains := func(status int, field, value string) (limit, remaining int) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.base+"/openapi.json?api_key="+alice, http.NoBody)
		ledgertest.Must(t, err)
		r.Header.Set(field, value)
		a, err := v.client.Do(r)
		ledgertest.Must(t, err)
		defer a.Body.Close()
		if a.StatusCode != status || (status == http.StatusUnauthorized) != (a.Header.Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%s: status %d, %v, want %d", field, a.StatusCode, a.Header, status)
		}
		limit, err = strconv.Atoi(a.Header.Get("X-RateLimit-Limit"))
		ledgertest.Must(t, err)
		remaining, err = strconv.Atoi(a.Header.Get("X-RateLimit-Remaining"))
		ledgertest.Must(t, err)
		return limit, remaining
	}
	expect := func(status int, field, value string, limit, remaining int) {
		t.Helper()
		l, r := remains(status, field, value)
		ledgertest.Equal(t, []int{l, r}, []int{limit, remaining}, "%s: the limit, and what remains of it", field)
	}
	expect(200, "X-Nothing", "", 8, 7)                 // a key in the URL is none
	expect(200, "Authorization", "Basic "+alice, 8, 6) // another scheme is none of ours
	expect(200, "Authorization", "Bearer "+alice, 50, 49)
	expect(200, "X-API-Key", alice, 50, 48)
	expect(200, "X-API-Key", bob, 50, 49)

	follow := func(key string) (ended chan error, begun chan struct{}) {
		ended, begun = make(chan error, 1), make(chan struct{})
		c, err := clientlib.New(v.base, clientlib.Options{APIKey: key})
		ledgertest.Must(t, err)
		go func() {
			ready := sync.OnceFunc(func() { close(begun) })
			ended <- c.Stream(t.Context(), clientlib.Subscription{Programs: []string{systemProgram}}, clientlib.Handler{Ready: ready})
		}()
		return ended, begun
	}
	endedA, begunA := follow(alice)
	endedB, begunB := follow(bob)
	for _, begun := range []chan struct{}{begunA, begunB} {
		select {
		case <-begun:
		case <-time.After(patience):
			t.Fatal("a stream with a key did not begin")
		}
	}

	if os.Geteuid() == 0 { // whoever may read the file still may
		ledgertest.Must(t, os.Chown(file, 65532, 65533))
	}
	manage(exitOK, "revoke", "alice")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 || os.Geteuid() == 0 && info.Sys().(*syscall.Stat_t).Uid != 65532 {
		t.Errorf("the file has become another one's: %v, %v", info, err)
	}
	v.Signal(syscall.SIGHUP)
	var refused *clientlib.StatusError
	select {
	case err := <-endedA:
		if !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
			t.Errorf("the stream of a revoked key ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("the stream of a revoked key goes on")
	}
	expect(401, "X-API-Key", alice, 8, 4) // the stream's attempt to come back counted too
	_, before := remains(200, "X-API-Key", bob)
	manage(exitOK, "revoke", "bob") // the last one
	ledgertest.Must(t, os.WriteFile(file, []byte("keys: 3"), 0o600))
	v.Signal(syscall.SIGHUP)
	v.errs.await(t, "SIGHUP: nothing is reloaded(?s:.*)API keys .*line 1")
	expect(200, "X-API-Key", bob, 50, before-1)
	select {
	case err := <-endedB:
		t.Errorf("the stream of the other key ended: %v", err)
	default:
	}
	// A browser, which cannot set fields on a socket, offers the key as a subprotocol, and does not get it back.
	browser := websocket.Dialer{Subprotocols: []string{"ledgerd", "key." + bob}}
	socket, response, err := browser.Dial("ws"+strings.TrimPrefix(v.base, "http")+"/ws/accounts?mode=none", nil)
	ledgertest.Must(t, err)
	defer socket.Close()
	if socket.Subprotocol() != "ledgerd" || response.Header.Get("X-RateLimit-Limit") != "50" {
		t.Errorf("a socket with a key: subprotocol %q, limit %q", socket.Subprotocol(), response.Header.Get("X-RateLimit-Limit"))
	}
	expect(401, "X-API-Key", bob+"x", 8, 3)
	expect(401, "Authorization", "bearer "+strings.Repeat("x", 4000), 8, 2)
	expect(401, "Authorization", "Bearer", 8, 1)
	expect(200, "X-Nothing", "", 8, 0)
	expect(429, "X-API-Key", "ledgerd_", 8, 0) // guesses use up what the address may ask
	if got := v.metric(`ledgerd_api_key_requests_total{tier="gold"}`); got < 6 {
		t.Errorf("counted %v requests with a key", got)
	}
	if all := v.errs.String(); strings.Contains(all, alice) || strings.Contains(all, bob) {
		t.Errorf("a key is shown:\n%s", all)
	}
}
