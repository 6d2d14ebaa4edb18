package load

import (
	"cmp"
	"net/http"
	"time"

	"ledgerd/bench/latency"
)

// Counts are what came of requests. All that were sent are over.
type Counts struct {
	Latency    *latency.Histogram // of all responses, from when the request was due
	Statuses   map[int]int        // responses by status
	Errors     map[string]int     // requests without a response, by what went wrong
	Bytes      int64              // of all responses; of those over HTTP/2 their bodies
	Unsent     int                // requests that were due when every connection was busy, until the end
	Gone       int                // responses that say that what was learned of the server is there no more: 404
	Wrong      map[string]int     // of those that were verified, by what is wrong
	RetryAfter string             // of the first 429
	Took       time.Duration      // from the first request to the last response
}

// NewCounts returns empty counts.
func NewCounts() *Counts {
	return &Counts{Latency: latency.New(), Statuses: map[int]int{}, Errors: map[string]int{}, Wrong: map[string]int{}}
}

// Answered returns how many responses came.
func (c *Counts) Answered() int { return int(c.Latency.Count()) }

// OK returns how many responses had a status below 400, and were not found wrong.
func (c *Counts) OK() (ok int) {
	for status, n := range c.Statuses {
		if status < http.StatusBadRequest {
			ok += n
		}
	}
	return ok - sum(c.Wrong)
}

// Failed returns how many requests had another response, or none, without those for what is gone.
func (c *Counts) Failed() int { return c.Sent() - c.OK() - c.Gone }

// Sent returns how many requests were sent.
func (c *Counts) Sent() int { return c.Answered() + sum(c.Errors) }

func sum(counts map[string]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// Due returns how many requests were due; in a closed loop those that were sent.
func (c *Counts) Due() int { return c.Sent() + c.Unsent }

// PerSecond returns how many responses came in a second.
func (c *Counts) PerSecond() float64 { return float64(c.Answered()) / max(c.Took.Seconds(), 1e-9) }

// Merge adds what another thread or an earlier interval has counted.
func (c *Counts) Merge(other *Counts) {
	c.Latency.Merge(other.Latency)
	add(c.Statuses, other.Statuses)
	add(c.Errors, other.Errors)
	c.Bytes += other.Bytes
	c.Unsent += other.Unsent
	c.Gone += other.Gone
	add(c.Wrong, other.Wrong)
	c.RetryAfter = cmp.Or(c.RetryAfter, other.RetryAfter)
	c.Took = max(c.Took, other.Took)
}

func add[K comparable](to, more map[K]int) {
	for key, n := range more {
		to[key] += n
	}
}
