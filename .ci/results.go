// Results runs the tests that the manual's page of faults names, and prints each row with what holds, its tests and their results.
// It prints what a test that failed said, and exits with 1 then. A row whose tests were all skipped is not counted as one that holds.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

const page = "httpd/console/manual/faults.md"

// attacked is the package whose attacks measure a node, so that it runs by itself.
const attacked = "./cmd/ledgerd"

// asked makes the tests of attacked run that are skipped unless they are asked for, at their smallest.
var asked = []string{"LEDGERD_ABUSE=1", "LEDGERD_CRASH_ALL=1", "LEDGERD_CLIENT_CUTS=100", "LEDGERD_CLUSTER_HUNDREDS=1"}

var (
	tests  = regexp.MustCompile(`([a-z0-9/]+)\.((?:Test|Fuzz)\w+)`)
	where  = regexp.MustCompile(`^\s*\w+\.go:\d+: `)
	framed = regexp.MustCompile(`^\s*(===|---) `) // a line that the go command made
)

// An event is a line of go test -json. See go doc test2json.
type event struct{ Action, Package, Test, Output string }

// A result is how a test ended.
type result struct {
	verdict string // pass, in part where only some of its subtests were skipped, skipped or FAIL
	skipped []string
	passed  int // how many of its subtests
	output  strings.Builder
}

// results are by package and test, as the page names them. What a package says itself is kept under an empty name of a test.
type results map[string]*result

func main() {
	text, err := os.ReadFile(page)
	if err != nil {
		exit(err)
	}
	var names, packages []string
	for _, m := range tests.FindAllStringSubmatch(string(text), -1) {
		packages, names = append(packages, "./"+m[1]), append(names, m[2])
	}
	packages, names = unique(packages), unique(names)
	packages = slices.DeleteFunc(packages, func(p string) bool { return p == attacked })
	ended := results{}
	ended.run(names, nil, packages...)
	ended.run(names, asked, attacked)
	if !ended.print(string(text)) {
		os.Exit(1)
	}
}

func unique(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// run runs the tests of these names. A package that fails is no error: its tests say so.
func (r results) run(names, environment []string, packages ...string) {
	arguments := []string{"test", "-json", "-count", "1", "-p", "4", "-timeout", "20m", "-run", "^(" + strings.Join(names, "|") + ")$"}
	command := exec.Command("go", append(arguments, packages...)...)
	command.Env, command.Stderr = append(os.Environ(), environment...), os.Stderr
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	reasons := map[string]string{} // of tests and subtests: the last they said
	for events := json.NewDecoder(out); err == nil; {
		var e event
		if err = events.Decode(&e); err == nil {
			r.add(e, reasons)
		}
	}
	if err != io.EOF {
		exit(err)
	}
	_ = command.Wait()
}

func (r results) add(e event, reasons map[string]string) {
	name, subtest, _ := strings.Cut(e.Test, "/")
	name = strings.TrimPrefix(e.Package, "ledgerd/") + "." + name
	t := r[name]
	if t == nil {
		t = &result{}
		r[name] = t
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(os.Stderr, e.Output)
	case "output":
		t.output.WriteString(e.Output)
		if !framed.MatchString(e.Output) {
			reasons[e.Package+e.Test] = where.ReplaceAllString(strings.TrimSpace(e.Output), "")
		}
	case "skip":
		t.skipped = append(t.skipped, strings.TrimPrefix(subtest+": ", ": ")+reasons[e.Package+e.Test])
		if subtest == "" {
			t.verdict = "skipped"
		}
	case "pass":
		switch {
		case subtest != "":
			t.passed++
		case t.skipped == nil:
			t.verdict = "pass"
		case t.passed == 0:
			t.verdict = "skipped"
		default:
			t.verdict = "in part"
		}
	case "fail":
		if subtest == "" {
			t.verdict = "FAIL"
			fmt.Fprint(os.Stderr, t.output.String())
		}
	}
}

// print prints the rows of the page, and reports whether no test of theirs failed.
func (r results) print(page string) bool {
	order := []string{"FAIL", "pass", "in part", "skipped", "no test"} // of the verdicts of its tests, a row has the one that is first here
	counts := map[string]int{}
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || !strings.ContainsAny(cells[0][:1], "FG") {
			continue
		}
		row, lines := len(order)-1, ""
		for _, name := range tests.FindAllString(cells[3], -1) {
			t := cmp.Or(r[name], &result{})
			verdict := cmp.Or(t.verdict, "FAIL") // it did not end, or not even begin
			row = min(row, slices.Index(order, verdict))
			reasons := strings.TrimSuffix(": "+strings.Join(t.skipped, "; "), ": ")
			lines += fmt.Sprintf("     %-8s %s%s\n", verdict, name, reasons)
		}
		counts[order[row]]++
		if lines == "" {
			lines = "              " + cells[3] + "\n"
		}
		fmt.Printf("%-4s %-8s %s\n%s", cells[0], order[row], cells[2], lines)
	}
	fmt.Print("Rows:")
	for _, verdict := range order {
		fmt.Printf("  %d %s", counts[verdict], verdict)
	}
	fmt.Println()
	return counts["FAIL"] == 0
}
