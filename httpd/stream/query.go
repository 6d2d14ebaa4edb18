package stream

import (
	"strings"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// query is what a client asks for as it connects.
type query struct {
	wants     wants
	level     ledger.Commitment
	resume    ledger.Opt[ledger.Seq]
	conflates bool
}

// parseQuery reads the query of a handshake. A parameter that there is not is an error, because a misspelt one would subscribe to everything;
// those that begin with an underscore are for others, and ignored. There are never too many names: a request line holds some 240.
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
	q = query{level: r.level, resume: r.from, conflates: r.conflates}
	q.wants.everything, q.wants.names = !r.narrow, r.names
	q.wants.show(r.form)
	return q, nil
}
