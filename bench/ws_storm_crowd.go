package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"ledgerd/bench/wsclient"
)

// stormOrder is what a storm of clients is told to do: a line of JSON.
type stormOrder struct {
	Do      string     `json:"do"`                // connect, ping or leave
	URL     string     `json:"url,omitempty"`     // connect: where to
	Clients int        `json:"clients,omitempty"` // connect: so many, all at once
	First   netip.Addr `json:"first,omitzero"`    // connect: the address that the first come from
	Each    int        `json:"each,omitempty"`    // connect: so many from each address
}

// stormReport is how that went: a line of JSON.
type stormReport struct {
	Connected int         `json:"connected"` // or, of a ping, answered
	Refused   map[int]int `json:"refused"`   // by status
	Failed    int         `json:"failed"`    // without an answer, or lost since they connected
	Why       string      `json:"why"`       // the first of those
	Seconds   float64     `json:"seconds"`
	P50, P99  float64     // of a handshake, or of an answer to a ping, in ms
}

// stormPatience is how long a client waits for the server. A connection whose first packets
// were dropped is tried again by the kernel after one, three, seven and fifteen seconds.
const stormPatience = time.Minute

// stormCrowd is the clients of a storm.
type stormCrowd struct {
	conns []*wsclient.Conn
}

// StormClients is a process of its own that does as it is told, line by line, until in ends:
// so that what it costs to be 15,000 clients disturbs nobody's clock. It is part of the
// program that runs the scenarios.
func StormClients(ctx context.Context, in io.Reader, out io.Writer) error {
	var crowd stormCrowd
	defer crowd.leave()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var order stormOrder
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			return fmt.Errorf("not an order: %w", err)
		}
		var report stormReport
		switch order.Do {
		case "connect":
			report = crowd.connect(ctx, &order)
		case "ping":
			report = crowd.ping()
		case "leave":
			report = crowd.leave()
		default:
			return fmt.Errorf("there is no order %q", order.Do)
		}
		if err := json.NewEncoder(out).Encode(report); err != nil {
			return err
		}
	}
	return lines.Err()
}

// stormCount gathers how clients fared.
type stormCount struct {
	began time.Time

	mu     sync.Mutex
	report stormReport
	took   *Histogram
}

func newStormCount() *stormCount {
	return &stormCount{began: time.Now(), took: NewHistogram(), report: stormReport{Refused: make(map[int]int)}}
}

// note counts one client, which began when the given time has passed since.
func (s *stormCount) note(took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var refused *wsclient.RefusedError
	switch {
	case err == nil:
		s.report.Connected++
		s.took.Record(took)
	case errors.As(err, &refused):
		s.report.Refused[refused.Status]++
	default:
		if s.report.Failed++; s.report.Why == "" {
			s.report.Why = err.Error()
		}
	}
}

// done returns the report, when all are counted.
func (s *stormCount) done() stormReport {
	s.report.Seconds = time.Since(s.began).Seconds()
	s.report.P50, s.report.P99 = milliseconds(s.took.Quantile(0.5)), milliseconds(s.took.Quantile(0.99))
	return s.report
}

// connect lets clients connect, all of them at the same time.
func (c *stormCrowd) connect(ctx context.Context, o *stormOrder) stormReport {
	count := newStormCount()
	conns := make([]*wsclient.Conn, o.Clients)
	var dialling sync.WaitGroup
	local := o.First
	for i := range conns {
		if i > 0 && o.Each > 0 && i%o.Each == 0 {
			local = local.Next()
		}
		from := local
		dialling.Go(func() {
			began := time.Now()
			conn, err := wsclient.Dial(ctx, o.URL, wsclient.Options{Local: from, Timeout: stormPatience})
			count.note(time.Since(began), err)
			conns[i] = conn
		})
	}
	dialling.Wait()
	for _, conn := range conns {
		if conn != nil {
			c.conns = append(c.conns, conn)
		}
	}
	return count.done()
}

// ping has everybody ask whether the server still knows it.
func (c *stormCrowd) ping() stormReport {
	const atOnce = 256
	count := newStormCount()
	turns := make(chan struct{}, atOnce)
	var asking sync.WaitGroup
	for _, conn := range c.conns {
		turns <- struct{}{}
		asking.Go(func() {
			began := time.Now()
			err := askPong(conn)
			count.note(time.Since(began), err)
			<-turns
		})
	}
	asking.Wait()
	return count.done()
}

// leave ends all connections, every second one without a word.
func (c *stormCrowd) leave() stormReport {
	count := newStormCount()
	for i, conn := range c.conns {
		if i%2 == 0 {
			_ = conn.Close() // the server may have been first
		} else {
			reset(conn)
		}
		count.note(0, nil)
	}
	c.conns = nil
	return count.done()
}
