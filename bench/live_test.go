package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/feed"
	"ledgerd/bench/proc"
)

// somebodys starts a ledgerd as somebody else would, of whose ledger the test knows nothing.
func somebodys(t *testing.T, args ...string) *proc.Server {
	t.Helper()
	args = append([]string{"--source", "sim:accounts=3000,tps=300,slot_time=100ms", "--wal-sync", "off"}, args...)
	s, err := proc.Start(t.Context(), program(t, "ledgerd"), args, proc.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// liveEnv is one in which a server that runs is loaded.
func liveEnv(t *testing.T, c LiveConfig) *Env {
	t.Helper()
	live, err := NewLive(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(live.client.CloseIdleConnections)
	return &Env{Live: live, Dir: t.TempDir(), Rounds: 2, Duration: 300 * time.Millisecond, Scale: 0.02, Progress: t.Output()}
}

// small has scenarios of REST start peers with a program that can, and few connections.
func small(s Scenario, t *testing.T, env *Env) (*Result, error) {
	t.Helper()
	for _, rest := range append(restAll, mixedAll...) {
		if rest.name == s.Name && rest.own == "" {
			r := &restRun{env: env, self: []string{program(t, "ledgerbench"), "peer"}, o: RESTOptions{Connections: 8}, result: &Result{Scenario: s.Name}}
			return r.result, r.noteLimit(rest.run(r, t.Context()))
		}
	}
	return s.Do(t.Context(), env)
}

func TestServerThatRunsIsLoaded(t *testing.T) {
	t.Parallel()
	server := somebodys(t)
	env := liveEnv(t, LiveConfig{URL: server.URL(), OpsURL: server.OpsURL()})
	for _, s := range All(1000) {
		result, err := small(s, t, env)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if s.Own != "" {
			if len(result.Rows) > 0 || len(result.Notes) != 1 || !strings.Contains(result.Notes[0], s.Own) {
				t.Errorf("%s: %+v", s.Name, result)
			}
			continue
		}
		if len(result.Rows) == 0 || !strings.Contains(strings.Join(result.Notes, "\n"), server.URL()) {
			t.Errorf("%s: %+v", s.Name, result)
		}
		for _, row := range result.Rows {
			if row.Subject == "canned" {
				continue
			}
			if f := row.figure("CPU of the server"); len(f.Values) != env.Rounds {
				t.Errorf("%s, %s: the server takes %v", s.Name, row.Subject, f.Values)
			}
			if f := row.figure("neither found nor not found"); f.Median() > 0 {
				t.Errorf("%s, %s: %v answers were neither found nor not found", s.Name, row.Subject, f.Values)
			}
			if f := row.figure("requests"); s.Name != "follow" && f.Median() <= 0 {
				t.Errorf("%s, %s: requests %v", s.Name, row.Subject, f.Values)
			}
		}
		for _, g := range result.Goals {
			if !g.Met() {
				t.Errorf("%s: %s is %v", s.Name, g.What, g.Value)
			}
		}
	}
}

func TestWhatAServerTakesIsLeftOutWhereNobodyCanTell(t *testing.T) {
	t.Parallel()
	server := somebodys(t)
	for name, c := range map[string]LiveConfig{"unknown": {URL: server.URL()}, "the process": {URL: strings.TrimSuffix(server.URL(), "/api"), Pid: server.Pid()}} {
		result, err := small(REST(RESTOptions{})[0], t, liveEnv(t, c))
		if err != nil {
			t.Fatal(err)
		}
		values := result.Row("ledgerd").figure("CPU of the server").Values
		if said := strings.Contains(strings.Join(result.Notes, "\n"), "is not known"); (len(values) > 0) != (c.Pid > 0) || said != (c.Pid == 0) {
			t.Errorf("%s: the server takes %v; notes: %q", name, values, result.Notes)
		}
	}
}

func TestLimitOfAServerIsRespectedAndNamed(t *testing.T) {
	t.Parallel()
	server := somebodys(t, "--rate-limit-minute", "60", "--rate-limit-exempt", "192.0.2.0/24")
	env := liveEnv(t, LiveConfig{URL: server.URL()})
	result, err := small(REST(RESTOptions{})[0], t, env)
	var limited *limitedError
	if !errors.As(err, &limited) || !strings.Contains(err.Error(), "--rate-limit-exempt") {
		t.Fatalf("err = %v", err)
	}
	row := result.Row("refused")
	answered, refused := row.last("answered before the limit"), row.last("refused with 429")
	if answered < 1 || answered > 60 || refused < 1 || refused > 100 {
		t.Errorf("%v answered, then %v refused", answered, refused)
	}
	metrics, err := server.Metrics()
	if err != nil {
		t.Fatal(err)
	}
	// It is not asked on and on: a few on each of the connections.
	if got := proc.Sum(metrics, "ledgerd_http_rate_limited_total"); got > 100 {
		t.Errorf("the server has refused %v", got)
	}
	_, err = (&Scenario{Name: "first", Run: func(context.Context, *Env) (*Result, error) { return nil, limited }}).Do(t.Context(), env)
	if !errors.As(err, &limited) {
		t.Errorf("err = %v", err)
	}
	next := &Scenario{Name: "next", Run: func(context.Context, *Env) (*Result, error) { panic("it is asked on") }}
	if result, err = next.Do(t.Context(), env); err != nil || !strings.Contains(result.Notes[0], "wants to be asked no more") {
		t.Errorf("%+v, %v", result, err)
	}
	if _, err := NewLive(t.Context(), LiveConfig{URL: server.URL()}); !errors.As(err, &limited) {
		t.Errorf("who asks first gets %v", err)
	}
}

func TestSubscribersAboveACapAreNamed(t *testing.T) {
	t.Parallel()
	server := somebodys(t, "--rate-limit-exempt", "192.0.2.0/24")
	env := liveEnv(t, LiveConfig{URL: server.URL()})
	env.Scale = 1
	result, err := following.Do(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	row, notes := result.Row("ledgerd"), strings.Join(result.Notes, " ")
	if row.last("subscribers") < 1 || row.last("subscribers")+row.last("not let in") != followSubscribers || row.last("frames") <= 0 {
		t.Errorf("figures: %+v", row)
	}
	if row.last("not let in") < 1 || !strings.Contains(notes, "refused with 429") || !strings.Contains(notes, "--rate-limit-exempt") {
		t.Errorf("notes: %s", notes)
	}
	// Who is not let in at all is told why.
	for err == nil {
		var crowd *followers
		if crowd, err = follow(t.Context(), server.StreamURL(), 1); err == nil {
			defer crowd.leave()
		}
	}
	if !strings.Contains(err.Error(), "--rate-limit-exempt") {
		t.Errorf("err = %v", err)
	}
}

// Of a ledger without transactions and well-known programs accounts are learned by listening.
func TestAccountsAreLearnedByListening(t *testing.T) {
	t.Parallel()
	env := &Env{Ledgerd: program(t, "ledgerd"), Dir: t.TempDir(), Progress: t.Output()}
	r, err := startRig(t.Context(), env, feed.Config{Accounts: 500, Updates: 50})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Kill()
	live := func() *Live { return liveEnv(t, LiveConfig{URL: r.URL()}).Live }
	if _, err := live().learn(t.Context()); err == nil || !strings.Contains(err.Error(), "tells of no account") {
		t.Errorf("of a ledger at rest: err = %v", err)
	}
	writing, stop := context.WithCancel(t.Context())
	wrote := make(chan error, 1)
	go func() {
		_, err := r.feed.Pace(writing, 20*time.Millisecond, math.MaxInt)
		wrote <- err
	}()
	found, err := live().learn(t.Context())
	stop()
	if err := errors.Join(err, <-wrote); err != nil {
		t.Fatal(err)
	}
	if len(found.keys) != 500 || len(found.programs) != feed.Programs || found.programs[0].accounts < 500/feed.Programs {
		t.Errorf("%d accounts and programs %v", len(found.keys), found.programs)
	}
}

func TestWhatIsNoLedgerdIsNotLoaded(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	like := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"1.2.3"}`) }))
	defer like.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, tt := range map[string]struct {
		c    LiveConfig
		want string
	}{
		"TLS":                {LiveConfig{URL: "https://127.0.0.1:1"}, "past its proxy"},
		"no host":            {LiveConfig{URL: "127.0.0.1:1"}, ""},
		"nobody":             {LiveConfig{URL: gone.URL}, "cannot reach"},
		"another":            {LiveConfig{URL: other.URL}, "is no ledgerd"},
		"no such process":    {LiveConfig{URL: like.URL, Pid: 1 << 30}, "cannot tell"},
		"no operators there": {LiveConfig{URL: like.URL, OpsURL: other.URL}, "cannot tell"},
		"no such metric":     {LiveConfig{URL: like.URL, OpsURL: gone.URL}, "cannot tell"},
	} {
		if _, err := NewLive(t.Context(), tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	if live, err := NewLive(t.Context(), LiveConfig{URL: like.URL + "/"}); err != nil || live.base.Path != "/api" || !live.Here() || live.String() != like.URL+"/api, version 1.2.3" {
		t.Errorf("%v, %v", live, err)
	}
}

func TestAnswersOfAnUnknownLedgerAreOfWhatWasAskedFor(t *testing.T) {
	truth := liveTruth{known: &known{keys: []string{"k0", "k1"}, signatures: []string{"s0"}}, programs: []knownProgram{{"p0", 3}}}
	const head = "HTTP/1.1 200 OK\r\nX-Ledger-Slot: 5\r\n\r\n"
	for kind, body := range map[restKind]string{
		askAccount: `{"pubkey":"k1","lamports":1`, askBalance: `{"pubkey":"k1","lamports":1`, askBatch: `{"accounts":[`, askLatest: `{"slot":`,
		askTransaction: `{"signature":"s0",`, askProgram: `{"program_id":"p0",`,
	} {
		if err := truth.check(restAsk{kind, 1}, 200, []byte(head), []byte(body)); err != nil {
			t.Errorf("kind %d: %v", kind, err)
		}
		if truth.check(restAsk{kind, 1}, 200, []byte("HTTP/1.1 200 OK\r\n\r\n"), []byte(body)) == nil {
			t.Errorf("kind %d: an answer that names no slot is taken", kind)
		}
		if truth.check(restAsk{kind, 1}, 200, []byte(head), []byte(`{"pubkey":"k0","lamports":1`)) == nil {
			t.Errorf("kind %d: another answer is taken", kind)
		}
		if err := truth.check(restAsk{kind, 1}, 404, []byte(head), nil); err != nil {
			t.Errorf("kind %d: gone: %v", kind, err)
		}
	}
	if truth.check(restAsk{askMissing, 1}, 200, []byte(head), []byte(`{"pubkey":`)) == nil {
		t.Error("an account that cannot be there is taken")
	}
	truth.signatures = nil
	if err := truth.check(restAsk{askTransaction, 0}, 200, []byte(head), []byte(`{"pubkey":"k0","lamports":`)); err != nil {
		t.Errorf("without transactions: %v", err)
	}
}
