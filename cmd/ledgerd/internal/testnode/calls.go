package testnode

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"ledgerd/engine/ledger"
)

// call is a JSON-RPC request.
type call struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
}

// callError is how a call fails.
type callError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Codes that nodes answer with.
const (
	codeCleanedUp       = -32001
	codeNotAvailable    = -32004 // not yet
	codeUnhealthy       = -32005
	codeSkipped         = -32007 // or missing
	codeSkippedLongTerm = -32009 // or missing
	codeStatusUnknown   = -32014
	codeVersion         = -32015 // of a transaction
	codeContextSlot     = -32016 // not reached
	codeParams          = -32602
	codeMethod          = -32601
	codeParse           = -32700
)

// maxCallBytes bounds a request, as nodes do.
const maxCallBytes = 50 << 10

// serveCall answers a request over HTTP, or opens a WebSocket.
func (n *Node) serveCall(w http.ResponseWriter, r *http.Request) {
	if !n.allowed(r) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		n.serveSocket(w, r)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/health" {
		_, _ = io.WriteString(w, "ok")
		return
	}
	if r.Method != http.MethodPost {
		http.Error(w, "Used HTTP Method is not allowed. POST or OPTIONS is required", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallBytes))
	if err != nil {
		http.Error(w, "Payload Too Large", http.StatusRequestEntityTooLarge)
		return
	}
	if n.refuseCall(w, r) {
		return
	}
	answer := n.answerAll(body)
	if f, ok := n.faults.take(BadAnswer); ok {
		badAnswer(w, answer, f.How)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(answer)
}

// allowed checks the token: in x-token, as a bearer, or in the path or query.
func (n *Node) allowed(r *http.Request) bool {
	t := n.config.Token
	_, password, _ := r.BasicAuth()
	return t == "" || r.Header.Get("X-Token") == t || r.Header.Get("Authorization") == "Bearer "+t || password == t ||
		strings.Contains(r.URL.Path, "/"+t) || strings.Contains(r.URL.RawQuery, "="+t)
}

// refuseCall has a request fail before it is looked at, if a fault says so.
func (n *Node) refuseCall(w http.ResponseWriter, r *http.Request) bool {
	if f, ok := n.faults.take(Slow); ok {
		select {
		case <-time.After(f.For):
		case <-r.Context().Done():
		}
	}
	f, ok := n.faults.take(RateLimit, ServerError)
	if !ok {
		return false
	}
	if f.Kind == RateLimit {
		n.count(func(t *Tally) { t.RateLimited++ })
		switch f.How {
		case 0:
			w.Header().Set("Retry-After", "1")
		case 2:
			w.Header().Set("Retry-After", time.Now().Add(2*time.Second).UTC().Format(http.TimeFormat))
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code": 429, "message":"Too many requests for a specific RPC call"}, "id": 1 }`)
		return true
	}
	code := [...]int{http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusBadGateway}[f.How%3]
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, "<html><body><h1>"+http.StatusText(code)+"</h1></body></html>")
	return true
}

// BadAnswerWays is how many ways there are for an answer to be nonsense.
const BadAnswerWays = 6

// badAnswer sends what no node would answer.
func badAnswer(w http.ResponseWriter, answer []byte, how int) {
	switch how % BadAnswerWays {
	case 1: // the body ends early
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		answer = answer[:len(answer)/2]
	case 2: // cut, and well-formed for HTTP
		answer = answer[:len(answer)/2]
	case 3: // of another request
		answer = []byte(strings.Replace(string(answer), `"id":`, `"id":9`, 1))
	case 4: // neither result nor error
		answer = []byte(`{"jsonrpc":"2.0","id":1}`)
	case 5: // nested without end
		answer = []byte(strings.Repeat("[", 100_000))
	default:
		answer = []byte("\x1f\x8b\x00 nonsense")
	}
	_, _ = w.Write(answer)
}

// answerAll answers one call or a batch of them.
func (n *Node) answerAll(body []byte) []byte {
	if trimmed := strings.TrimSpace(string(body)); strings.HasPrefix(trimmed, "[") {
		var calls []call
		if err := json.Unmarshal(body, &calls); err != nil {
			return answer(nil, nil, &callError{codeParse, "Parse error", nil})
		}
		answers := make([]string, len(calls))
		for i := range calls {
			answers[i] = string(n.answer(&calls[i]))
		}
		return []byte("[" + strings.Join(answers, ",") + "]")
	}
	var c call
	if err := json.Unmarshal(body, &c); err != nil {
		return answer(nil, nil, &callError{codeParse, "Parse error", nil})
	}
	return n.answer(&c)
}

// answer spells a response.
func answer(id json.RawMessage, result any, failed *callError) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := struct {
		Version string          `json:"jsonrpc"`
		Result  any             `json:"result"`
		ID      json.RawMessage `json:"id"`
	}{"2.0", result, id}
	var b []byte
	if failed != nil {
		b, _ = json.Marshal(struct {
			Version string          `json:"jsonrpc"`
			Error   *callError      `json:"error"`
			ID      json.RawMessage `json:"id"`
		}{"2.0", failed, id})
	} else {
		b, _ = json.Marshal(out)
	}
	return b
}

// answer answers one call.
func (n *Node) answer(c *call) []byte {
	n.count(func(t *Tally) { t.Calls[c.Method]++ })
	if f, ok := n.faults.take(NodeBehind); ok {
		return answer(c.ID, nil, &callError{codeUnhealthy, "Node is behind by " + strconv.Itoa(40+f.How) + " slots", map[string]int{"numSlotsBehind": 40 + f.How}})
	}
	result, failed := n.call(c)
	return answer(c.ID, result, failed)
}

// options are the last parameter of most calls.
type options struct {
	Commitment string     `json:"commitment"`
	Encoding   string     `json:"encoding"`
	DataSlice  *dataSlice `json:"dataSlice"`
	Details    string     `json:"transactionDetails"`
	Rewards    *bool      `json:"rewards"`
	MaxVersion *int       `json:"maxSupportedTransactionVersion"`
	MinContext *uint64    `json:"minContextSlot"`
}

type dataSlice struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// parameter reads a parameter, false if there is none of this kind.
func (c *call) parameter(i int, to any) bool {
	return i < len(c.Params) && json.Unmarshal(c.Params[i], to) == nil
}

// options reads the options, which are an object at a place or wherever the last one is.
func (c *call) options(from int) (options, *callError) {
	o := options{Commitment: "finalized"}
	for i := from; i < len(c.Params); i++ {
		if len(c.Params[i]) > 0 && c.Params[i][0] == '{' {
			if json.Unmarshal(c.Params[i], &o) != nil {
				return o, invalid("Invalid params")
			}
		}
	}
	return o, nil
}

func invalid(text string) *callError { return &callError{codeParams, text, nil} }

// knows returns what JSON-RPC knows now.
func (n *Node) knows() view {
	stale, lasts := n.faults.lasting(Stale)
	n.mu.Lock()
	defer n.mu.Unlock()
	at := len(n.views) - 1
	if lasts {
		at = max(0, at-stale.N)
	}
	return n.views[at]
}

// newest returns the newest slot of the commitment asked for.
func (n *Node) newest(o *options) (ledger.Slot, ledger.Commitment, *callError) {
	level, ok := ledger.ParseCommitment(o.Commitment)
	if !ok {
		return 0, 0, invalid("Invalid params: unknown commitment")
	}
	slot := n.knows().slots[level]
	if o.MinContext != nil && slot < ledger.Slot(*o.MinContext) {
		return 0, 0, &callError{codeContextSlot, "Minimum context slot has not been reached", map[string]uint64{"contextSlot": uint64(slot)}}
	}
	return slot, level, nil
}

// call answers a call with a result or an error.
func (n *Node) call(c *call) (any, *callError) {
	switch c.Method {
	case "getHealth":
		return "ok", nil
	case "getVersion":
		return map[string]any{"solana-core": "3.0.6", "feature-set": 3604001754}, nil
	case "getGenesisHash":
		return n.ledger.genesis().String(), nil
	case "getSlot", "getBlockHeight":
		o, failed := c.options(0)
		if failed != nil {
			return nil, failed
		}
		slot, _, failed := n.newest(&o)
		if b := n.ledger.mainAt(slot); c.Method == "getBlockHeight" && b != nil {
			return b.Height.Value, failed
		}
		return slot, failed
	case "getFirstAvailableBlock", "minimumLedgerSlot":
		return n.config.FirstBlock, nil
	case "getBlocks":
		return n.getBlocks(c)
	case "getBlock":
		return n.getBlock(c)
	case "getAccountInfo":
		return n.getAccountInfo(c)
	case "getMultipleAccounts":
		return n.getMultipleAccounts(c)
	}
	return nil, &callError{codeMethod, "Method not found", nil}
}
