package bench

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// plottedReport has, beside what the sample has, latencies of two subjects and names that a page
// must escape.
func plottedReport() *Report {
	report := sampleReport()
	result := &Result{Scenario: "answers <b>", Notes: []string{"a note & <script>alert(1)</script>"}}
	for i, subject := range []string{"ledgerd", "the <other> & co"} {
		h := NewHistogram()
		for n := range 2000 {
			h.Record(time.Duration((i+1)*(n+1)) * 10 * time.Microsecond)
		}
		row := result.Row(subject)
		row.AddPercentiles("answer", h)
		row.Add("answers", "answers/s", 1000*float64(2-i))
	}
	report.Results = append(report.Results, result)
	return report
}

func TestPageReadsAsItDid(t *testing.T) {
	var got strings.Builder
	if err := plottedReport().WriteHTML(&got); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report.html")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// A page must be whole wherever it is opened, with nothing in it that does anything.
func TestPageNeedsNothingElse(t *testing.T) {
	var b strings.Builder
	if err := plottedReport().WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(b.String(), `xmlns="http://www.w3.org/2000/svg"`, "")
	for _, never := range []string{"<script", "<link", "src=", "href=", "url(", "@import", "http:", "https:", "<other>", "<b>"} {
		if strings.Contains(text, never) {
			t.Errorf("the page has %q in it", never)
		}
	}
}

func TestPlotsAreFilesThatStandAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plots")
	if err := plottedReport().WriteSVG(dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
		svg, err := os.Open(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(svg); err == nil; _, err = d.Token() {
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s is not XML: %v", f.Name(), err)
		}
		_ = svg.Close()
	}
	const want = "answers-b-answer-percentiles.svg answers-b-answers.svg firehose-bytes.svg firehose-frames.svg"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("plots: %s, want %s", got, want)
	}
}

func TestBarsReachAsFarAsTheirFigures(t *testing.T) {
	var r Result
	r.Row("slow").Add("rate", "/s", 50)
	fast := r.Row("fast")
	fast.Add("rate", "/s", 100)
	fast.Add("rate", "/s", 60)
	fast.Add("rate", "/s", 80)
	svg := r.drawBars("rate", "/s")
	full := float64(plotWidth - labelWidth - valueWidth)
	for _, want := range []string{
		`width="` + numberOf(full*0.5) + `"`, `width="` + numberOf(full*0.8) + `"`,
		`x1="` + numberOf(labelWidth+full*0.6) + `"`, `x2="` + numberOf(labelWidth+full) + `"`, ">80 (60 – 100)<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the bars have no %s:\n%s", want, svg)
		}
	}
}

func TestBarsLeaveRoomForLongSubjects(t *testing.T) {
	var r Result
	subject := strings.Repeat("long ", 9)
	r.Row(subject).Add("rate", "/s", 50)
	if svg, want := r.drawBars("rate", "/s"), `x="`+numberOf(letterWidth*45+16)+`"`; !strings.Contains(svg, want) {
		t.Errorf("the bars do not begin at %s:\n%s", want, svg)
	}
}

func numberOf(v float64) string { return fmt.Sprintf("%.1f", v) }
