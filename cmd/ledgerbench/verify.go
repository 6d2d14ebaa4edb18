package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"ledgerd/bench/load"
)

// What a verified response may be.
var (
	errNotJSON = errors.New("the body is not JSON")
	errRPC     = errors.New("the call failed")
	errFalls   = errors.New("the slot is below that of the response before on this connection")
)

// verifier says what is wrong with the responses of a load. One goroutine uses it at a time.
type verifier struct {
	commitments []string // that the paths ask for
	newest      map[seen]uint64
}

// seen is what a slot must not fall behind: what came over the connection before, at the same commitment.
type seen struct {
	conn       int
	commitment string
}

func newVerifier(paths []string) *verifier {
	v := &verifier{newest: make(map[seen]uint64)}
	for _, path := range paths {
		_, commitment, _ := strings.Cut(path, "commitment=")
		commitment, _, _ = strings.Cut(commitment, "&")
		v.commitments = append(v.commitments, commitment)
	}
	return v
}

// verify says what is wrong with a response. A status of failure is counted as that, and says nothing else.
func (v *verifier) verify(conn, request int, r *fasthttp.Response) error {
	if r.StatusCode() >= http.StatusBadRequest {
		return nil
	}
	none := r.StatusCode() == http.StatusNoContent || r.StatusCode() == http.StatusNotModified // these have no body
	if body, err := r.BodyUncompressedWithLimit(load.MostBytes); err != nil || !none && !json.Valid(body) {
		return errNotJSON
	} else if isRPCError(body) {
		return errRPC
	}
	slot, _ := strconv.ParseUint(string(r.Header.Peek("X-Ledger-Slot")), 10, 64) // 0 of what has none
	of := seen{conn, v.commitments[request%len(v.commitments)]}
	if slot != 0 && slot < v.newest[of] {
		return errFalls
	}
	v.newest[of] = max(v.newest[of], slot)
	return nil
}

// isRPCError reports whether an answer of JSON-RPC is that of a call that failed.
func isRPCError(answer []byte) bool {
	var call struct {
		JSONRPC string
		Error   json.RawMessage
	}
	return json.Unmarshal(answer, &call) == nil && call.JSONRPC != "" && len(call.Error) > 0 && string(call.Error) != "null"
}
