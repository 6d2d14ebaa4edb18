package figures

import (
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"ledgerd/engine/ledger/ledgertest"
)

// TestASetWritesEachFigureWithItsMeaning compares all that a scrape shows.
func TestASetWritesEachFigureWithItsMeaning(t *testing.T) {
	set := metrics.NewSet()
	Counter(set, "a_total", "Things.").Add(3)
	Gauge(set, "b", "A large one.", func() float64 { return 12e9 })
	Gauge(set, "c_seconds", "A small one.", func() float64 { return 0.25 + One(false) })
	Each(set, "d", "gauge", "By color.", "color", []string{"red", "green"}, func(i int) uint64 { return uint64(7 + i) })
	Counters(set, "e_total", "By size.", "size", "small", "large")["large"].Inc()
	want := `# HELP a_total Things.
# TYPE a_total counter
a_total 3
# HELP b A large one.
# TYPE b gauge
b 12000000000
# HELP c_seconds A small one.
# TYPE c_seconds gauge
c_seconds 0.25
# HELP d By color.
# TYPE d gauge
d{color="red"} 7
d{color="green"} 8
# HELP e_total By size.
# TYPE e_total counter
e_total{size="large"} 1
e_total{size="small"} 0
`
	var got strings.Builder
	set.WritePrometheus(&got)
	ledgertest.Equal(t, got.String(), want, "the page")
}
