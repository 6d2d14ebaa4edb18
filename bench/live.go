package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"ledgerd/bench/proc"
)

// LiveConfig says where a server is that runs already. URL is required.
type LiveConfig struct {
	URL    string // http://HOST:PORT, with /api or without
	OpsURL string // of the operators' listener, http://HOST:PORT; "": unknown
	Pid    int    // the process, if it is on this machine; 0: unknown
}

// Live is a server that somebody else has started, of which nothing is known but where it is.
type Live struct {
	base    *url.URL       // with the path that everything begins with: /api
	address netip.AddrPort // the host as a number
	cpu     func() (time.Duration, error)
	client  *http.Client
	version string
	limited bool   // it has refused to be asked more
	coarse  bool   // cpu is what the server counts of itself
	found   *known // once it was learned
}

// livePatience is how long such a server may take for one answer.
const livePatience = 10 * time.Second

// processSeconds is what the server says that it has had of the processors.
const processSeconds = "process_cpu_seconds_total"

// NewLive finds the server, and sees that it answers and that what it takes of its processors
// can be read where that was asked for.
func NewLive(ctx context.Context, c LiveConfig) (*Live, error) {
	l := &Live{client: &http.Client{Timeout: livePatience, Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 1}}}
	if err := l.find(ctx, c.URL); err != nil {
		return nil, err
	}
	var status struct{ Version string }
	code, _, err := l.get(ctx, "/status", &status)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot reach the server: %w", err)
	case code == statusLimited:
		return nil, &limitedError{refused: 1}
	case code != http.StatusOK || status.Version == "":
		return nil, fmt.Errorf("what answers at %s is no ledgerd: GET /status is answered %d", l.base, code)
	}
	l.version = status.Version
	switch {
	case c.Pid > 0:
		l.cpu = func() (time.Duration, error) { return cpuOf(c.Pid) }
	case c.OpsURL != "":
		l.coarse = true
		l.cpu = func() (time.Duration, error) { return l.counted(strings.TrimSuffix(c.OpsURL, "/")) }
	default:
		return l, nil
	}
	if _, err := l.cpu(); err != nil {
		return nil, fmt.Errorf("cannot tell what the server takes of its processors: %w", err)
	}
	return l, nil
}

// find works out what to connect to.
func (l *Live) find(ctx context.Context, address string) (err error) {
	if l.base, err = url.Parse(address); err != nil {
		return err
	}
	if l.base.Scheme != "http" || l.base.Host == "" {
		return fmt.Errorf("%s is not http://HOST:PORT: a server behind TLS is loaded past its proxy", address)
	}
	l.base.Path = strings.TrimSuffix(l.base.Path, "/")
	if l.base.Path == "" {
		l.base.Path = "/api"
	}
	port := l.base.Port()
	if port == "" {
		port = "80"
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", l.base.Hostname())
	if err != nil {
		return err
	}
	at := found[0].Unmap()
	for _, other := range found { // what listens on one of them usually does on that of version 4
		if other.Unmap().Is4() {
			at = other.Unmap()
			break
		}
	}
	l.address = netip.AddrPortFrom(at, uint16(number))
	return nil
}

// Here reports whether the server is reached by an address that only this machine has.
func (l *Live) Here() bool { return l.address.Addr().IsLoopback() }

// String says where the server is and what it calls itself.
func (l *Live) String() string {
	return fmt.Sprintf("%s, version %s", l.base, l.version)
}

// StreamURL returns the address to subscribe at.
func (l *Live) StreamURL() string { return "ws://" + l.base.Host + l.base.Path + "/ws/accounts" }

// counted returns what the server says it has had of the processors, which it knows to 10 ms.
func (l *Live) counted(ops string) (time.Duration, error) {
	metrics, err := proc.Scrape(l.client, ops)
	if err != nil {
		return 0, err
	}
	seconds, ok := metrics[processSeconds]
	if !ok {
		return 0, fmt.Errorf("%s/metrics has no %s", ops, processSeconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// get asks for a path behind the base, and reads a record out of an answer with status 200.
func (l *Live) get(ctx context.Context, path string, record any) (status int, head http.Header, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base.String()+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.StatusCode, response.Header, nil
	}
	if err := json.NewDecoder(response.Body).Decode(record); err != nil {
		return 0, nil, fmt.Errorf("GET %s is not answered with JSON: %w", path, err)
	}
	return response.StatusCode, response.Header, nil
}

// statusLimited is the answer to who asks more than a server lets one client.
const statusLimited = http.StatusTooManyRequests

// exemptHint says how to be let ask more.
const exemptHint = "start it with --rate-limit-exempt and the network of this machine, or with --rate-limit-minute 0 --rate-limit-hour 0, to load it"

// limitedError says that a server refused to be asked so much.
type limitedError struct{ answered, refused int }

// Error says what came, and how more would.
func (e *limitedError) Error() string {
	return fmt.Sprintf("the server limits how much one client may ask: %d requests were answered, then %d refused with 429; %s", e.answered, e.refused, exemptHint)
}

// limitOf returns a *limitedError if requests were refused.
func limitOf(c *loadCounts) error {
	if refused := c.Statuses[statusLimited]; refused > 0 {
		return &limitedError{c.answered() - refused, refused}
	}
	return nil
}

// noteLimit notes, of an error, how much was asked before the server wanted no more.
func (r *restRun) noteLimit(err error) error {
	if limited := (*limitedError)(nil); errors.As(err, &limited) {
		row := r.result.Row("refused")
		row.Add("answered before the limit", "", float64(limited.answered))
		row.Add("refused with 429", "", float64(limited.refused))
		r.result.Notes = append(r.result.Notes, limited.Error())
	}
	return err
}
