package nodetest

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"ledgerd/engine/ledger"
)

// Call is a JSON-RPC request.
type Call struct {
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method"`
	Params  []json.RawMessage `json:"params"`
	Options Options           `json:"-"` // the last of Params, where it is an object
}

// Options are the last parameter of most calls.
type Options struct {
	Commitment string                           `json:"commitment"`
	Encoding   string                           `json:"encoding"`
	DataSlice  *struct{ Offset, Length uint64 } `json:"dataSlice"`
	Details    string                           `json:"transactionDetails"`
	MaxVersion *int                             `json:"maxSupportedTransactionVersion"`
	MinContext *uint64                          `json:"minContextSlot"`
}

// CallError is how a call fails.
type CallError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Chain is what a node knows of a chain.
type Chain interface {
	Newest(ledger.Commitment) ledger.Slot
	Context(ledger.Commitment) ledger.Slot // as of which accounts are told
	First() ledger.Slot                    // whose block is kept
	Slots() []ledger.Slot                  // that have blocks, in order
	// Block spells the block of a slot; nil: there is none.
	Block(ledger.Slot, *Options) (any, *CallError)
	// Account returns an account, and its data, as it stands at the end of a slot; nil: it does not exist then.
	Account(ledger.Pubkey, ledger.Slot) (*ledger.AccountWrite, []byte)
}

// maxCallBytes bounds a request, as nodes do.
const maxCallBytes = 50 << 10

// ReadCall reads a request.
func ReadCall(w http.ResponseWriter, r *http.Request) (*Call, error) {
	var c Call
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxCallBytes)).Decode(&c)
	if n := len(c.Params); n > 0 {
		_ = json.Unmarshal(c.Params[n-1], &c.Options)
	}
	return &c, err
}

// serveCall answers a request.
func (n *Node) serveCall(w http.ResponseWriter, r *http.Request) {
	if t := n.config.Token; t != "" && !strings.HasSuffix(r.URL.Path, "/"+t) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	c, err := ReadCall(w, r)
	if err != nil {
		http.Error(w, "this node answers one JSON-RPC call at a time", http.StatusBadRequest)
		return
	}
	if n.refuseCall(w, r) {
		return
	}
	if _, isBad := n.faults.take(BadAnswer); isBad {
		_, _ = io.WriteString(w, "\x1f\x8b\x00 nonsense")
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(c.Answer(n))
}

// refuseCall has a request fail before it is looked at, if a fault says so.
func (n *Node) refuseCall(w http.ResponseWriter, r *http.Request) bool {
	if f, ok := n.faults.take(Slow); ok {
		select {
		case <-time.After(f.For):
		case <-r.Context().Done():
		}
	}
	switch f, _ := n.faults.take(RateLimit, ServerError); f.Kind {
	case RateLimit:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code": 429, "message":"Too many requests for a specific RPC call"}, "id": 1 }`)
		return true
	case ServerError:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<html><body><h1>Service Unavailable</h1></body></html>")
		return true
	}
	return false
}

// Answer returns what a node that knows a chain answers.
func (c *Call) Answer(chain Chain) []byte { return c.encode(c.call(chain)) }

func (c *Call) encode(result any, failed *CallError) []byte {
	out := object{"jsonrpc": "2.0", "id": c.ID, "result": result}
	if failed != nil {
		delete(out, "result")
		out["error"] = failed
	}
	b, _ := json.Marshal(out)
	return b
}

func invalid(text string) *CallError { return &CallError{-32602, text} }

// read reads the parameters of a call before its options, and returns the level asked for.
func (c *Call) read(parameters ...any) (level ledger.Commitment, failed *CallError) {
	parameters = append(parameters, new(Options))
	for i, to := range parameters {
		if len(c.Params) != len(parameters) || json.Unmarshal(c.Params[i], to) != nil {
			return 0, invalid("Invalid params: invalid type")
		}
	}
	level, ok := ledger.ParseCommitment(c.Options.Commitment)
	if !ok || level == ledger.Processed && c.Method != "getSlot" && c.Method != "getMultipleAccounts" {
		return 0, invalid("Invalid params: unknown commitment, or one that the method does not support")
	}
	return level, nil
}

// call answers a call with a result or an error.
func (c *Call) call(chain Chain) (any, *CallError) {
	switch c.Method {
	case "getSlot":
		level, failed := c.read()
		return chain.Newest(level), failed
	case "getFirstAvailableBlock":
		return chain.First(), nil
	case "getBlocksWithLimit":
		return c.getBlocksWithLimit(chain)
	case "getBlock":
		return c.getBlock(chain)
	case "getMultipleAccounts":
		return c.getMultipleAccounts(chain)
	}
	return nil, &CallError{-32601, "Method not found"}
}
