package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// oftenest is how often a node without limits is asked, and seldom one with limits: 720 times an hour, of the 1,000 that a node
	// lets a client ask by default.
	oftenest = time.Second
	seldom   = 5 * time.Second
	// longest is how seldom a node is asked at most, whatever is left of the budget.
	longest = 5 * time.Minute
	// maxAnswerBytes is far above the metrics of a node.
	maxAnswerBytes = 16 << 20
	askTimeout     = 5 * time.Second
)

// door is a listener of a node: where its metrics and its health are.
type door struct{ metrics, health string }

var public, operators = door{"/api/metrics", "/api/health"}, door{"/metrics", "/readyz"}

// node is a node that is asked. One goroutine uses it.
type node struct {
	address string // http://HOST:PORT
	client  *http.Client
	door    door // that answered last
	budget  budget
}

// budget is what the node said last of how much it may be asked.
type budget struct {
	limit, remaining int // limit 0: as much as is wanted
	reset            time.Time
	retryAfter       time.Duration // above 0: it refused to answer
}

// news is what came of asking.
type news struct {
	at     time.Time
	sample *sample
	why    string // the node is not healthy, "" if it is
	err    error  // nothing but at and budget counts then
	budget budget
	next   time.Duration // until the node is asked again
}

func newNode(client *http.Client, address string) *node {
	address = strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/api")
	return &node{address: address, door: public, client: &http.Client{Transport: client.Transport, Timeout: askTimeout}}
}

// ask asks for the metrics, and for the reason where the node is not healthy.
func (n *node) ask(ctx context.Context) (a news) {
	text, status, err := n.get(ctx, n.door.metrics)
	if status == http.StatusNotFound && n.door == public { // the listener for operators has no budget
		if text, status, err = n.get(ctx, operators.metrics); status == http.StatusOK {
			n.door = operators
		}
	}
	a.at, a.err = time.Now(), err
	if err == nil {
		a.sample = parseSample(string(text), a.at)
		if a.sample.value("ledgerd_healthy", "") == 0 {
			a.why = n.askWhy(ctx)
		}
	}
	a.budget, a.next = n.budget, n.budget.pause(a.at)
	if a.why != "" && n.budget.limit > 0 { // it took two requests
		a.next = min(longest, 2*a.next)
	}
	return a
}

func (n *node) askWhy(ctx context.Context) string {
	var record struct {
		Details string `json:"details"`
	}
	text, status, _ := n.get(ctx, n.door.health)
	if status != http.StatusServiceUnavailable || json.Unmarshal(text, &record) != nil {
		return "not healthy"
	}
	return record.Details
}

// get asks for a path. An answer other than 200 is an error, and is returned too.
func (n *node) get(ctx context.Context, path string) (text []byte, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.address+path, nil)
	if err != nil {
		return nil, 0, err
	}
	response, err := n.client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	number := func(name string) int {
		i, _ := strconv.Atoi(response.Header.Get(name)) // absent where there is no limit
		return i
	}
	if response.Header.Get("X-RateLimit-Limit") != "" { // else it is a proxy that answers
		n.budget = budget{
			limit: number("X-RateLimit-Limit"), remaining: number("X-RateLimit-Remaining"),
			reset: time.Unix(int64(number("X-RateLimit-Reset")), 0),
		}
	}
	n.budget.retryAfter = time.Duration(number("Retry-After")) * time.Second
	text, err = io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d", path, response.StatusCode)
	}
	return text, response.StatusCode, err
}

// pause returns how long the node is left alone, so that no more than half of what is left of the budget is used, whatever else
// the node lets.
func (b *budget) pause(now time.Time) time.Duration {
	least := oftenest
	if b.limit > 0 {
		least = max(seldom, b.reset.Sub(now)/time.Duration(max(1, b.remaining/2)))
	}
	return min(longest, max(b.retryAfter, least))
}
