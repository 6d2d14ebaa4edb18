package bench

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ledgerd/bench/proc"
)

// soakSample is how the server stood at a moment, and what it did since the sample before.
type soakSample struct {
	standing
	at time.Duration // since the start

	framesPerSecond float64
	serverCPU       float64 // of one core, as is loadCPU
	loadCPU         float64
	loadLate        float64 // ms that the load stood still at most
	restP99         float64 // ms
	restFaults      float64 // neither 200 nor, of a closed account, 404

	cpu, ownCPU time.Duration      // so far
	frames      float64            // so far
	closes      map[string]float64 // so far, by reason
}

// soakColumn is one quantity of a sample.
type soakColumn struct {
	name, unit string
	value      func(*soakSample) float64
}

// soakColumns begin with those that must not grow.
var soakColumns = []soakColumn{
	{"RSS", "MiB", func(s *soakSample) float64 { return s.rss }},
	{"goroutines", "", func(s *soakSample) float64 { return s.goroutines }},
	{"files", "", func(s *soakSample) float64 { return s.files }},
	{"heap in use", "MiB", func(s *soakSample) float64 { return s.heap }},
	{"connections", "", func(s *soakSample) float64 { return s.connections }},
	{"frames", "/s", func(s *soakSample) float64 { return s.framesPerSecond }},
	{"server CPU", "cores", func(s *soakSample) float64 { return s.serverCPU }},
	{"load CPU", "cores", func(s *soakSample) float64 { return s.loadCPU }},
	{"load stood still", "ms", func(s *soakSample) float64 { return s.loadLate }},
	{"REST p99", "ms", func(s *soakSample) float64 { return s.restP99 }},
	{"REST faults", "", func(s *soakSample) float64 { return s.restFaults }},
}

// soakStanding is how many columns must not grow.
const soakStanding = 3

// measureSoak returns how the server stands.
func measureSoak(server *proc.Server) (s soakSample, err error) {
	now, usage, metrics, err := standingOf(server)
	if err != nil {
		return s, err
	}
	s.standing, s.frames = now, metrics["ledgerd_ws_frames_total"]
	s.cpu, s.ownCPU, s.closes = usage.CPU(), ownCPU(), make(map[string]float64)
	const closed = `ledgerd_ws_closed_total{reason="`
	for name, n := range metrics {
		if reason, ok := strings.CutPrefix(name, closed); ok {
			s.closes[strings.TrimSuffix(reason, `"}`)] = n
		}
	}
	return s, nil
}

// ownCPU returns what this process has used.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// sample takes a sample every ten seconds, or ten in all if the run is short, until ctx ends. Each
// is written to a file at once.
func (s *soakRun) sample(ctx context.Context, server *proc.Server, poll *load) (samples []soakSample, err error) {
	file, err := os.Create(s.csvPath())
	if err != nil {
		return nil, fmt.Errorf("cannot keep the samples: %w", err)
	}
	defer file.Close()
	s.env.Say("soak: every sample goes to %s, as long as the run lasts", file.Name())
	w := csv.NewWriter(file)
	start := time.Now()
	last, err := measureSoak(server)
	if err != nil {
		return nil, err
	}
	_ = w.Write(soakHead(last.closes)) // an error stays with the writer, as do the next
	ticks := time.NewTicker(min(soakEvery, s.env.Duration/10))
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return samples, w.Error()
		case <-ticks.C:
		}
		now, err := measureSoak(server)
		if err != nil {
			return samples, err
		}
		now.at = time.Since(start)
		polled := poll.take()
		s.unanswered(polled)
		now.since(&last, polled)
		now.loadLate = milliseconds(s.watch.longest())
		last = now
		samples = append(samples, now)
		_ = w.Write(now.record())
		w.Flush()
		if every := int(5 * time.Minute / soakEvery); len(samples)%every == 0 {
			s.env.Say("soak, %v: RSS %.0f MiB, %.0f goroutines, %.0f files, %.0f frames/s, %d faults",
				now.at.Round(time.Second), now.rss, now.goroutines, now.files, now.framesPerSecond, s.count())
		}
	}
}

// since works out what happened since the sample before.
func (s *soakSample) since(before *soakSample, polled *loadCounts) {
	took := (s.at - before.at).Seconds()
	s.framesPerSecond = (s.frames - before.frames) / took
	s.serverCPU = (s.cpu - before.cpu).Seconds() / took
	s.loadCPU = (s.ownCPU - before.ownCPU).Seconds() / took
	s.restP99 = float64(polled.Latency.Quantile(0.99)) / float64(time.Millisecond)
	s.restFaults = float64(polled.answered() - polled.Statuses[200] - polled.Statuses[404] + polled.Failed)
}

// soakHead names the columns of the file: those of all samples, and the closes by reason.
func soakHead(closes map[string]float64) []string {
	head := []string{"seconds"}
	for _, c := range soakColumns {
		head = append(head, strings.TrimSpace(c.name+" "+c.unit))
	}
	for _, reason := range slices.Sorted(maps.Keys(closes)) {
		head = append(head, "closed "+reason)
	}
	return head
}

// record is the sample as a line of the file.
func (s *soakSample) record() []string {
	line := []string{strconv.FormatFloat(s.at.Seconds(), 'f', 1, 64)}
	for _, c := range soakColumns {
		line = append(line, strconv.FormatFloat(c.value(s), 'f', 2, 64))
	}
	for _, reason := range slices.Sorted(maps.Keys(s.closes)) {
		line = append(line, strconv.FormatFloat(s.closes[reason], 'f', 0, 64))
	}
	return line
}

// slope returns how much RSS grows in an hour, by least squares.
func slope(samples []soakSample) float64 {
	var n, x, y, xx, xy float64
	for _, s := range samples {
		h := s.at.Hours()
		n, x, y, xx, xy = n+1, x+h, y+s.rss, xx+h*h, xy+h*s.rss
	}
	return ratio(n*xy-x*y, n*xx-x*x)
}
