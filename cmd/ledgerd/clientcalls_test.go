package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// consoleFolder holds the client for JavaScript, the manual, and what npm installs.
const consoleFolder = "../../httpd/console"

// output runs a program in a folder and returns what it prints.
func output(t *testing.T, dir string, words ...string) []byte {
	t.Helper()
	c := exec.CommandContext(t.Context(), words[0], words[1:]...)
	said := new(bytes.Buffer)
	c.Dir, c.Stderr = dir, said
	printed, err := c.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", words, err, printed, said)
	}
	return printed
}

// The calls of the JavaScript client return what the node answers, exactly, or its refusal.
func TestJavaScriptClientReadsWhatTheNodeAnswers(t *testing.T) {
	t.Parallel()
	needs(t, "node")
	library := consoleFolder + "/client/ledgerd.js"
	output(t, ".", "node", "testdata/refusals.mjs", library)
	output(t, ".", "node", "testdata/same.mjs", library)
	q := askable(t)
	q.check(q.printed(output(t, ".", "node", "testdata/calls.mjs", library, q.node(), q.text)))
}

// The Python client raises what the node refuses, whether it is asked for over REST, in a handshake or in a message. It waits for a transaction to
// become final, which takes longer here than a node lets one question wait.
func TestPythonClientIsRefused(t *testing.T) {
	t.Parallel()
	node := launch(t, "--data-dir", t.TempDir(), "--source", "sim:slot_time=100ms").ready()
	library := "../../httpd/client/python/ledgerd.py"
	said := output(t, ".", python(t), "testdata/refusals.py", library, hostOf(node.base))
	output(t, ".", python(t), "testdata/same.py", library)
	ledgertest.Golden(t, "testdata/refusals.txt", string(said), *update)
}

var (
	fencedCode = regexp.MustCompile("(?ms)^```(\\w+)[^\n]*\n(.*?)^```$") // in a page of the manual: its language, and itself
	pinned     = regexp.MustCompile(`([\w./-]+?)(?:/cmd/[\w-]+)?@v?([\d.]+)`)
)

// Clients that are generated from the OpenAPI document, with the commands that the manual prints, read what the node answers. The types of
// the JavaScript client are those of the document, and its module has what they say.
func TestGeneratedClientsReadWhatTheNodeAnswers(t *testing.T) {
	if os.Getenv("LEDGERD_GENERATORS") == "" {
		t.Skip("it takes half a minute, and the network: make openapi")
	}
	page := readFile(t, consoleFolder+"/manual/clients.md")
	modules, err := filepath.Abs(consoleFolder + "/node_modules")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## Generated clients\n")
	q, dir := askable(t), t.TempDir()
	const lay = `cp -r testdata/generated/. "$1"/client "$1"/client/ledgerd.* "$1"/package.json "$0" && rm "$0"/client/*.d.ts && ln -s "$2" "$0"/node_modules`
	output(t, ".", "sh", "-c", lay, dir, consoleFolder, modules)
	pins := string(output(t, dir, "cat", "go.mod", "package.json"))
	for _, block := range fencedCode.FindAllStringSubmatch(section, -1) {
		if name, isFile := strings.CutPrefix(block[2], "// "); isFile {
			name, _, _ = strings.Cut(name, "\n")
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(block[2]), 0o644))
		}
	}
	for _, block := range fencedCode.FindAllStringSubmatch(section, -1) {
		for line := range strings.Lines(block[2]) {
			switch versions := pinned.FindAllStringSubmatch(line, -1); {
			case block[1] != "sh":
			case len(versions) == 0:
				output(t, dir, "sh", "-c", strings.ReplaceAll(line, "http://127.0.0.1:8080", q.node()))
			default: // what it installs is here
				for _, v := range versions {
					if !regexp.MustCompile(regexp.QuoteMeta(v[1]) + `(": "| v)` + regexp.QuoteMeta(v[2])).MatchString(pins) {
						t.Errorf("%s is of another version in the tests", v[0])
					}
				}
			}
		}
	}
	q.check(q.printed(output(t, dir, "go", "run", ".", q.base, q.text)))
	output(t, dir, "node_modules/.bin/tsc", "-p", ".")
	output(t, dir, "cp", "ledgerd.js", "built")
	q.check(q.printed(output(t, dir, "node", "built/calls.js", q.node(), q.text)))
}

// program returns the first of some programs that does what it is asked to; without one the test is skipped.
func program(t *testing.T, why string, args []string, names ...string) string {
	t.Helper()
	for _, name := range names {
		if exec.Command(name, args...).Run() == nil {
			return name
		}
	}
	t.Skip(why)
	return ""
}

// The programs of the manual follow a wallet as they are printed.
func TestProgramsOfTheManualFollow(t *testing.T) {
	if testing.Short() {
		t.Skip("they are programs of their own, which the race detector does not see")
	}
	t.Parallel()
	page := readFile(t, consoleFolder+"/manual/clients.md")
	module, err := filepath.Abs("../..")
	must(t, err)
	node := launch(t, "--data-dir", t.TempDir(), "--source", "sim:slot_time=50ms").ready()
	programs, _, _ := strings.Cut(string(page), "\n## Generated clients\n")
	blocks := fencedCode.FindAllStringSubmatch(programs, -1)
	ledgertest.Equal(t, len(blocks), 3, "programs of the page")
	for _, block := range blocks {
		language, text, dir := block[1], strings.ReplaceAll(block[2], "127.0.0.1:8080", hostOf(node.base)), t.TempDir()
		t.Run(language, func(t *testing.T) {
			var words []string
			file := filepath.Join(dir, "main."+map[string]string{"go": "go", "js": "mjs", "python": "py"}[language])
			must(t, os.WriteFile(file, []byte(text), 0o644))
			switch language {
			case "go":
				const build = `go mod init balances && go mod edit -require ledgerd@v0.0.0 -replace ledgerd="$0" && cp "$0"/go.sum . && go build -mod=mod`
				output(t, dir, "sh", "-c", build, module)
				words = []string{dir + "/balances"}
			case "js":
				const where = `NODE_PATH="$NODE_PATH:/usr/share/nodejs" node -p 'path.dirname(require.resolve("ws/package.json"))'`
				shell := program(t, "node has no package ws here: install node-ws", []string{"-c", where}, "sh")
				output(t, dir, shell, "-c", `cp "$0"/httpd/console/client/ledgerd.js . && mkdir node_modules && ln -s "$(`+where+`)" node_modules/ws`, module)
				words = []string{"node", file}
			case "python":
				output(t, dir, "cp", module+"/httpd/client/python/ledgerd.py", dir)
				words = []string{python(t), file}
			}
			launchWords(t, words...).out.await(t, `(?m)^\d+ uApo33936ABSobviirURXfWTVi6BTFPDUfH76MmRXkG \d+$`)
		})
	}
}
