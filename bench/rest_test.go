package bench

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ledgerd/bench/peer"
)

func newRESTRun(t *testing.T, name string, o RESTOptions, e Env) *restRun {
	t.Helper()
	e.Ledgerd, e.Dir, e.Progress = program(t, "ledgerd"), t.TempDir(), t.Output()
	return &restRun{env: &e, self: []string{program(t, "ledgerbench"), "peer"}, o: o, result: &Result{Scenario: name}}
}

// runREST runs a scenario of REST at a small scale, in which every answer that is looked at
// must be right.
func runREST(t *testing.T, name string, o RESTOptions, e Env) *Result {
	t.Helper()
	if o.Connections == 0 {
		o.Connections = 8
	}
	r := newRESTRun(t, name, o, e)
	run := map[string]func() error{
		"account": func() error { return r.account(t.Context()) }, "mix": func() error { return r.mix(t.Context()) },
		"pipelined": func() error { return r.pipelined(t.Context()) }, "size": func() error { return r.size(t.Context()) },
		"lists": func() error { return r.lists(t.Context()) }, "keys": func() error { return r.keys(t.Context()) },
		"mixed": func() error { return r.mixed(t.Context()) }, "paced": func() error { return r.paced(t.Context()) },
		"proxied": func() error { return r.proxied(t.Context()) },
	}[name]
	if err := run(); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.result.Rows {
		if got := row.figure("answers that were checked").Median(); got < 1 && row.Subject != "lists" { // which are too long
			t.Errorf("%s: %v answers were looked at", row.Subject, got)
		}
		if got := row.figure("neither found nor not found"); got.Median() != 0 {
			t.Errorf("%s: %v answers were neither found nor not found", row.Subject, got.Values)
		}
	}
	return r.result
}

func TestRESTAsksLedgerdAndPeersInTurns(t *testing.T) {
	t.Parallel()
	result := runREST(t, "account", RESTOptions{}, Env{Rounds: 2, Duration: 200 * time.Millisecond, Scale: 0.01, Peers: true})
	notes := strings.Join(result.Notes, "\n")
	for _, name := range []string{"ledgerd", "bare", "nethttp", "canned", "nginx", "webdis", "redis"} {
		row := result.Row(name)
		if strings.Contains(notes, name+" is left out: cannot start peer "+name+": there is no ") {
			continue
		}
		for _, figure := range []string{"requests", "CPU of the server", "p99"} {
			if f := row.figure(figure); len(f.Values) != 2 || f.Median() <= 0 {
				t.Errorf("%s: %s is %v; notes:\n%s", name, figure, f.Values, notes)
			}
		}
		if f := result.Row("ledgerd").figure(answersOf(name)); name != "ledgerd" && len(f.Values) != 2 {
			t.Errorf("compared with %s: %v", name, f.Values)
		}
	}
	if a, b := result.Row("ledgerd").figure("bytes of an answer").Median(), result.Row("bare").figure("bytes of an answer").Median(); a < b-20 || a > b+20 {
		t.Errorf("an answer is %v bytes, that of the bare handler %v", a, b)
	}
}

// The bare handler sends as much as ledgerd, whose limiter counts: the same fields, of the same lengths
// but for the digits, and the same body.
func TestBareHandlerSendsWhatLedgerdSends(t *testing.T) {
	t.Parallel()
	r := newRESTRun(t, "account", RESTOptions{}, Env{Peers: true, Scale: 0.001})
	own, accounts, kill, err := r.start(t.Context(), "ledgerd")
	if err != nil {
		t.Fatal(err)
	}
	defer kill()
	answer, err := answerOf(own)
	if err != nil {
		t.Fatal(err)
	}
	peers := r.peers(t.Context(), []peer.RESTPeer{peer.Bare}, answer, accounts)
	for _, s := range peers {
		defer func() { _ = s.stop() }()
	}
	digits := regexp.MustCompile(`[0-9]+`)
	sent := func(s *restSubject) (fields []string, body string) {
		head, text, err := s.fetch(restAsk{})
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(head), "\r\n") {
			if name, _, _ := strings.Cut(line, ": "); name == "Date" {
				line = name
			}
			fields = append(fields, digits.ReplaceAllString(line, "0"))
		}
		slices.Sort(fields)
		return fields, string(text)
	}
	fields, body := sent(own)
	bareFields, bareBody := sent(peers[0])
	if !slices.Equal(fields, bareFields) || body != bareBody {
		t.Errorf("ledgerd sends\n%q\n%s\nthe bare handler\n%q\n%s", fields, body, bareFields, bareBody)
	}
	limit, remaining := allowance(t, own, 0)
	if limit != 1<<24-1 || remaining >= limit-2 {
		t.Errorf("of %d requests a client has %d left after the third", limit, remaining)
	}
}

// allowance asks for an account, and returns what the answer says of the client's limit.
func allowance(t *testing.T, s *restSubject, index uint32) (limit, remaining int) {
	t.Helper()
	head, _, err := s.fetch(restAsk{index: index})
	if err != nil {
		t.Fatal(err)
	}
	limit, err1 := decimal(fieldValue(head, []byte("\r\nX-RateLimit-Limit: ")))
	remaining, err2 := decimal(fieldValue(head, []byte("\r\nX-RateLimit-Remaining: ")))
	if err1 != nil || err2 != nil {
		t.Fatalf("the answer tells of no limit: %q", head)
	}
	return limit, remaining
}

// A proxy's requests are counted for the clients that it names.
func TestRESTAsksThroughAProxy(t *testing.T) {
	t.Parallel()
	r := newRESTRun(t, "proxied", RESTOptions{}, Env{Scale: 0.001})
	s, kill, err := r.startProxied(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer kill()
	for i, want := range map[uint32]int{1: 1, 2: 1, restClients + 3: 1} {
		if limit, remaining := allowance(t, s, i); limit-remaining != want {
			t.Errorf("client %d has made %d requests, want %d", i, limit-remaining, want)
		}
	}
	if limit, remaining := allowance(t, s, 3); limit-remaining != 2 {
		t.Errorf("a client that asked twice has made %d requests", limit-remaining)
	}
	result := runREST(t, "proxied", RESTOptions{Connections: restConnections}, Env{Rounds: 2, Duration: 200 * time.Millisecond, Scale: 0.002})
	if len(result.Rows) != 2 || len(result.Goals) != 1 || result.Goals[0].Value <= 0 {
		t.Errorf("%d rows, goals %+v", len(result.Rows), result.Goals)
	}
}

func TestRESTLatenciesAreComparedAtARate(t *testing.T) {
	t.Parallel()
	result := runREST(t, "paced", RESTOptions{Connections: restConnections}, Env{Rounds: 2, Duration: 500 * time.Millisecond, Scale: 0.03, Peers: true})
	row := result.Row("ledgerd")
	for _, figure := range []string{latencyOf("p50", "bare"), latencyOf("p99", "bare")} {
		if f := row.figure(figure); len(f.Values) != 2 || f.Median() <= 0 {
			t.Errorf("%s is %v", figure, f.Values)
		}
	}
	if due := row.figure("requests that were due"); due.Median() < 450 || due.Median() > 500 || len(result.Rows) != 3 || len(result.Goals) != 3 {
		t.Errorf("%v were due; %d rows, goals %+v", due.Values, len(result.Rows), result.Goals)
	}
}

func TestRESTAsksAsItIsTold(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]RESTOptions{
		"pipelined":       {Depth: 4},
		"each of its own": {Fresh: true, Connections: 4},
		"at a rate":       {Rate: 1000, Zipf: true},
		"misses":          {Misses: 0.5},
		"everything":      {Mix: true, Rate: 1000},
		"many":            {Connections: 2500},
	} {
		t.Run(name, func(t *testing.T) {
			row := runREST(t, "account", o, Env{Rounds: 1, Duration: 600 * time.Millisecond, Scale: 0.002}).Row("ledgerd")
			if o.Rate > 0 {
				if got := row.figure("requests").Median() * 600 * 1e-3 * 1e3; got > 600 {
					t.Errorf("%v were asked in 600 ms at 1,000 a second", got)
				}
			}
			if got := row.figure("not found").Median(); got < 80*o.Misses/2 || o.Misses == 0 && got > 0 {
				t.Errorf("%v %% were not found of which %v should be missing", got, o.Misses)
			}
		})
	}
}

func TestRESTShowsWhatWasNeverSent(t *testing.T) {
	counts := newLoadCounts()
	counts.Statuses[200], counts.Unsent, counts.Took = 3, 5, time.Second
	var row Row
	(&restMeasured{loadCounts: counts}).note(&row, 8)
	if due, unsent := row.last("requests that were due"), row.last(neverSent); due != 8 || unsent != 5 {
		t.Errorf("%v were due, %v never sent", due, unsent)
	}
}

func TestRESTMixAsksForEverything(t *testing.T) {
	t.Parallel()
	runREST(t, "mix", RESTOptions{}, Env{Rounds: 1, Duration: 500 * time.Millisecond, Scale: 0.01})
}

func TestRESTPipelinedAndSizesAreCompared(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pipelined", "size"} {
		result := runREST(t, name, RESTOptions{}, Env{Rounds: 2, Duration: 200 * time.Millisecond, Scale: 0.002})
		if len(result.Rows) != 2 || len(result.Goals) != 1 || result.Goals[0].Value <= 0 {
			t.Errorf("%s: %d rows, goals %+v", name, len(result.Rows), result.Goals)
		}
	}
}

func TestRESTKeysAreChosenInEveryWay(t *testing.T) {
	t.Parallel()
	result := runREST(t, "keys", RESTOptions{}, Env{Rounds: 2, Duration: 200 * time.Millisecond, Scale: 0.005})
	missing := map[string]float64{}
	for _, row := range result.Rows {
		missing[row.Subject] = row.figure("not found").Median()
		if f := row.figure("requests"); len(f.Values) != 2 || f.Median() <= 0 {
			t.Errorf("%s: requests %v", row.Subject, f.Values)
		}
	}
	if half := missing["half do not exist"]; missing["all equally often"] != 0 || missing["a few often (zipf)"] != 0 || half < 30 || half > 70 || missing["none exists"] != 100 {
		t.Errorf("not found, in percent: %v", missing)
	}
}

func TestRESTListsAreAskedForBesideAccounts(t *testing.T) {
	t.Parallel()
	result := runREST(t, "lists", RESTOptions{}, Env{Rounds: 2, Duration: 600 * time.Millisecond, Scale: 0.02})
	if got := result.Row("lists").figure("records"); len(got.Values) != 2 || got.Median() <= 0 {
		t.Errorf("records: %v", got.Values)
	}
	if got := result.Row("accounts beside lists").figure("p99, of no lists"); len(got.Values) != 2 || got.Median() <= 0 || len(result.Goals) != 2 {
		t.Errorf("p99: %v; goals %+v", got.Values, result.Goals)
	}
	if got, want := result.Row("lists").figure("bytes of an answer").Median(), 1000*170.0; got < want {
		t.Errorf("a list of 1,000 accounts is %v bytes, want at least %v", got, want)
	}
}

func TestRESTOptionsAreValidated(t *testing.T) {
	for _, o := range []RESTOptions{{Connections: 10_001}, {Connections: -1}, {Depth: -1}, {Depth: 2, Fresh: true}, {Rate: -1}, {Misses: 1.1}} {
		if err := o.Validate(); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	if err := (&RESTOptions{Connections: 10_000, Depth: 16, Rate: 5, Misses: 0.5, Mix: true}).Validate(); err != nil {
		t.Error(err)
	}
}

// What is not true at the slot that an answer names is noticed, for each kind of question.
func TestTruthNoticesWhatIsWrong(t *testing.T) {
	c := truth{page: 2}
	c.ledger.Accounts, c.ledger.Updates = 100, 10
	const head = "HTTP/1.1 200 OK\r\nX-Ledger-Slot: 1000002\r\nContent-Length: 1\r\n\r\n"
	good := map[restKind]string{
		askAccount: c.record(5, 1000002),
		askBalance: fmt.Sprintf(`{"pubkey":"%s","lamports":999999,"slot":1000002}`, keyOf(5)),
	}
	for kind := range restKinds {
		if body, ok := good[kind]; ok {
			if err := c.check(restAsk{kind, 5}, 200, []byte(head), []byte(body)); err != nil {
				t.Errorf("kind %d: %v", kind, err)
			}
		}
		for _, wrong := range []string{good[askAccount] + " ", strings.Replace(good[kind], "999999", "999998", 1), "{}", ""} {
			status := 200
			if err := c.check(restAsk{kind, 5}, status, []byte(head), []byte(wrong)); err == nil {
				t.Errorf("kind %d: %q is taken for the truth", kind, wrong)
			}
		}
	}
	if c.lamports(30, 1000002) != 999999 || c.lamports(19, 1000002) != 1000001 || c.lamports(29, 1000002) != 1000002 {
		t.Errorf("lamports: %d, %d and %d", c.lamports(30, 1000002), c.lamports(19, 1000002), c.lamports(29, 1000002))
	}
}
