package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ledgerd/bench"
	"ledgerd/engine/ledger/ledgertest"
)

// said is what a command wrote.
type said struct{ out, err bytes.Buffer }

func (s *said) streams() *streams {
	return &streams{&s.out, &s.err, "ledgerbench as it was typed"}
}

// does runs a command and returns its exit code and what it wrote.
func does(t *testing.T, args ...string) (code int, s *said) {
	t.Helper()
	s = new(said)
	return run(t.Context(), args, s.streams()), s
}

func TestHelpNamesEveryScenario(t *testing.T) {
	for _, words := range [][]string{{"run", "--help"}, {"help", "run"}} {
		code, s := does(t, words...)
		for _, scenario := range bench.Scenarios {
			if code != exitOK || !strings.Contains(s.out.String(), scenario.Name+": ") {
				t.Errorf("%q: exit code %d; %s is not in\n%s", words, code, scenario.Name, &s.out)
			}
		}
	}
}

// Help names no variable of the environment, from which nothing is taken, and the kind of what a list is of once.
func TestHelpOfConnectionsSaysWhatIsTaken(t *testing.T) {
	for _, command := range []string{"load", "listen"} {
		_, s := does(t, command, "--help")
		if text := s.out.String(); strings.Contains(text, "($") || !strings.Contains(text, "--from=ADDRESS,... ") {
			t.Errorf("%s: %s", command, text)
		}
	}
}

// What cannot be carried out is refused in one line, with another exit code for what was typed wrongly.
func TestWrongUseIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	empty, keys := filepath.Join(t.TempDir(), "records.txt"), filepath.Join(t.TempDir(), "keys")
	must(t, os.WriteFile(empty, nil, 0o600))
	must(t, os.WriteFile(keys, []byte("abc\n"), 0o600))
	program, err := os.Executable()
	must(t, err)
	node := httptest.NewServer(new(fakeNode))
	defer node.Close()
	full := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":"Invalid request parameters","details":"no such commitment"}`, http.StatusBadRequest)
	}))
	defer full.Close()
	for _, tt := range []struct {
		args string
		code int
		want string // in the one line that is said
	}{
		{"", exitUsage, "expected one of"},
		{"run nothing", exitUsage, `there is no scenario "nothing"`},
		{"run --rounds 0", exitUsage, "must be above 0"},
		{"run --ledgerd /nowhere/ledgerd", exitUsage, "there is no ledgerd to load"},
		{"run ingest --output /nowhere/records --ledgerd " + program, exitUsage, "/nowhere/records"},
		{"report " + empty + " " + filepath.Join(t.TempDir(), "page.md"), exitFailure, "does not say which revision"},
		{"report /nowhere/records page.md", exitUsage, "/nowhere/records"},
		{"listen http://127.0.0.1:1 --sockets 0", exitUsage, "--sockets must be"},
		{"listen http://127.0.0.1:1 --duration 0s", exitUsage, "--duration and --throttle must be"},
		{"listen http://127.0.0.1:1 --commitment maybe", exitUsage, "--commitment must be one of"},
		{"listen http://127.0.0.1:1 --pubkeys abc", exitUsage, `--pubkeys: key 1, "abc"`},
		{"listen http://127.0.0.1:1 --wallets ,", exitUsage, "--wallets: there is no key"},
		{"listen gopher://127.0.0.1", exitUsage, "is not the address of a node"},
		{"listen http://127.0.0.1:1", exitFailure, "connection refused"},
		{"listen " + full.URL, exitFailure, "refused with 400: no such commitment"},
		{"load a.example", exitUsage, "is not the address of a node"},
		{"load http://127.0.0.1:1", exitFailure, "connection refused"},
		{"load " + node.URL + " --rate fast", exitUsage, "--rate=fast is not max, search or a number"},
		{"load " + node.URL + " --rate NaN", exitUsage, "--rate=NaN"},
		{"load " + node.URL + " -c 0", exitUsage, "--connections must be"},
		{"load " + node.URL + " --duration 0s", exitUsage, "--duration must be above 0"},
		{"load " + node.URL + " --path blocks", exitUsage, "must begin with /"},
		{"load " + node.URL + " --mix account", exitUsage, "is not NAME=WEIGHT"},
		{"load " + node.URL + " --mix account=1 --path /status", exitUsage, "can't be used together"},
		{"load " + node.URL + " --keys " + keys, exitUsage, "not valid base58"},
		{"load " + node.URL + "/api/status --mix account=1", exitUsage, "can't be used together"},
		{"load " + node.URL + " --path http://127.0.0.1:1/api/status", exitUsage, "is not on 127.0.0.1"},
		{"load " + node.URL + " --header nonsense", exitUsage, `--header="nonsense" is not NAME: VALUE`},
		{"load " + node.URL + " --ca /nowhere/ca.pem", exitUsage, "the file of authorities"},
		{"load " + node.URL + " --api-key-file " + empty, exitUsage, "holds no key"},
		{"load " + node.URL + " --from here", exitUsage, "--from"},
		{"load " + node.URL + " --timeout 0s", exitUsage, "--timeout must be above 0"},
		{"load " + node.URL + " --slo p99", exitUsage, `--slo: "p99" is none of`},
		{"load " + node.URL + " --rate search", exitUsage, "--rate=search needs --slo"},
		{"load " + node.URL + " --json - --csv -", exitUsage, "one of --json, --csv and --hdr"},
		{"load http://somebody:secret@127.0.0.1:1", exitUsage, "is not http://HOST:PORT"},
		{"load " + node.URL + " --json /nowhere/figures", exitUsage, "/nowhere/figures"},
		{"listen " + node.URL + " --throttled 11", exitUsage, "--throttled not above"},
		{"listen " + node.URL + " --reference http://127.0.0.1:1", exitFailure, "--reference: 0 of 1 subscribers"},
	} {
		code, s := does(t, strings.Fields(tt.args)...)
		ledgertest.Equal(t, strings.Contains(s.err.String(), "secret"), false, "%q: whether it says the password", tt.args)
		if lines := strings.Count(s.err.String(), "\n"); code != tt.code || lines != 1 || !strings.Contains(s.err.String(), tt.want) {
			t.Errorf("%q: exit code %d, said %q; want %d and one line about %q", tt.args, code, &s.err, tt.code, tt.want)
		}
	}
}

// What run writes, report takes.
func TestReportIsWrittenFromRecords(t *testing.T) {
	dir := t.TempDir()
	records, page := filepath.Join(dir, "records.txt"), filepath.Join(dir, "RESULTS.md")
	const text = "commit: 0123456789ab\nchanges: no\nrounds: 1\n\nBenchmarkAccount/subject=ledgerd 1 5 req/s\n"
	must(t, os.WriteFile(records, []byte(text), 0o600))
	if code, s := does(t, "report", records, page); code != exitOK {
		t.Fatalf("exit code %d, said %q", code, &s.err)
	}
	if got, err := os.ReadFile(page); err != nil || !strings.Contains(string(got), "## Goals") || !strings.Contains(string(got), "- **ledgerd**: 5 req/s") {
		t.Errorf("%v\n%s", err, got)
	}
}
