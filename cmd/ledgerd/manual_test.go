package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

// manualPages returns the README and all pages of the manual.
func manualPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("../../httpd/console/manual/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("the manual has %d pages, %v", len(pages), err)
	}
	return append(pages, "../../README.md")
}

var (
	manualLink = regexp.MustCompile(`\]\(([^)]+)\)`)
	notInLinks = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors returns what links may name in a page: its headings, as they are written there.
func anchors(content string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(content) {
		if heading := strings.TrimLeft(line, "#"); heading != line {
			name := notInLinks.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			all[strings.ReplaceAll(name, " ", "-")] = true
		}
	}
	return all
}

// Links of the README and the manual lead to files that are there, and to headings in them; the README fits on a screen or two.
func TestLinksOfTheManualLeadSomewhere(t *testing.T) {
	for _, page := range manualPages(t) {
		content, err := os.ReadFile(page)
		must(t, err)
		for _, link := range manualLink.FindAllStringSubmatch(string(content), -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, "://") {
				t.Errorf("%s links to %s: the manual is read without a network", page, link[1])
				continue
			}
			target := content
			if file != "" {
				target, err = os.ReadFile(filepath.Join(filepath.Dir(page), file))
			}
			if err != nil || anchor != "" && !anchors(string(target))[anchor] {
				t.Errorf("%s: %s leads nowhere: %v", page, link[1], err)
			}
		}
		if filepath.Base(page) == "README.md" && len(content) > 8<<10 {
			t.Errorf("README.md has %d bytes", len(content))
		}
	}
}

// make alone prints each target that the README and the manual name.
func TestMakePrintsTheTargetsOfTheManual(t *testing.T) {
	printed := string(output(t, "../..", "make"))
	for _, page := range manualPages(t) {
		for _, target := range regexp.MustCompile("`make ([a-z-]+)").FindAllStringSubmatch(string(readFile(t, page)), -1) {
			ledgertest.Contains(t, printed, "\n  "+target[1]+" ", "what make prints, which %s names", page)
		}
	}
}

// The page of the architecture names each package but those of tests; the parts that it says do not know each other import nothing of each other.
func TestTheArchitectureIsAsItsPageSays(t *testing.T) {
	page := string(readFile(t, "../../httpd/console/manual/architecture.md"))
	strangers := []string{"shard", "snapshot", "httpd"}
	must(t, filepath.WalkDir("../..", func(file string, _ fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.Dir(file), "../../")
		part, _, _ := strings.Cut(name, "/")
		if err != nil || filepath.Ext(file) != ".go" || notOfTheProduct.MatchString(file) {
			return err
		}
		ledgertest.Contains(t, page, "`"+name+"`", "the page of the architecture")
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		for _, imported := range source.Imports {
			to, _, _ := strings.Cut(strings.Trim(strings.TrimPrefix(imported.Path.Value, `"ledgerd/`), `"`), "/")
			if to != part && slices.Contains(strangers, part) && slices.Contains(strangers, to) {
				t.Errorf("%s imports %s", file, imported.Path.Value)
			}
		}
		return err
	}))
}

var notOfTheProduct = regexp.MustCompile(`_test\.go$|test/[^/]+$|testdata/|node_modules/|/\.[a-z]`)
