package proc

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// scrapeTimeout is more than a scrape takes on a machine at its limit.
const scrapeTimeout = 30 * time.Second

// Metrics returns what the server counts of itself, by name with labels as they are written:
// ledgerd_ws_connections, ledgerd_slot{commitment="processed"}, go_goroutines.
func (s *Server) Metrics() (map[string]float64, error) { return Scrape(s.client, s.ops) }

// Scrape returns what a server counts of itself, from the base address of its operators'
// listener, or from that of its public one: http://HOST:PORT, http://HOST:PORT/api.
func Scrape(client *http.Client, base string) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	body, err := getOK(ctx, client, base+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics: %w", err)
	}
	return parseMetrics(string(body))
}

// parseMetrics reads the Prometheus text format, of which no label here holds a space behind
// the last brace.
func parseMetrics(text string) (map[string]float64, error) {
	metrics := make(map[string]float64)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if at < 0 || err != nil {
			return nil, fmt.Errorf("not a metric: %q", line)
		}
		metrics[line[:at]] = v
	}
	return metrics, nil
}

// Sum adds up all metrics of a name, whatever their labels.
func Sum(metrics map[string]float64, name string) (sum float64) {
	for k, v := range metrics {
		if k == name || strings.HasPrefix(k, name+"{") {
			sum += v
		}
	}
	return sum
}
