package stream

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// query is what a client asks for as it connects.
type query struct {
	wants     wants
	names     names // those that it wants
	level     ledger.Commitment
	resume    ledger.Opt[ledger.Seq]
	conflates bool
}

var errManyNames = errors.New("more than 10000 keys")

// parseQuery reads the query of a handshake. A parameter that there is not is an error, because a misspelt one would subscribe to everything;
// those that begin with an underscore are for others, and ignored.
func parseQuery(args *fasthttp.Args) (q query, err error) {
	r, sent := request{kind: connect}, make(map[string]string)
	for key, value := range args.All() {
		name := string(key)
		if _, twice := sent[name]; twice {
			value = nil
		}
		if !strings.HasPrefix(name, "_") {
			sent[name] = string(value)
		}
	}
	if err := take(&r, sent, "parameter"); err != nil {
		return q, err
	}
	if r.names.count() > maxNames {
		return q, errManyNames
	}
	q = query{names: r.names, level: r.level, resume: r.from, conflates: r.conflates}
	q.wants.everything = !r.narrow
	q.wants.names, _ = q.wants.names.plus(r.names)
	q.wants.show(r.extended, r.tokens, r.data)
	return q, nil
}
