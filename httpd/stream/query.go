package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// query is what a client asks for as it connects.
type query struct {
	wants  wants
	names  names // those that it wants
	level  ledger.Commitment
	resume ledger.Opt[ledger.Seq]

	extended, tokens, data, conflates bool
}

// parameter is one of a query.
type parameter struct {
	name string
	must string // what it must be
	set  func(q *query, value string) bool
}

// parameters are all there are.
var parameters = []parameter{
	{"pubkeys", mustBeKeys, listNames(pubkeys)},
	{"programs", mustBeKeys, listNames(programs)},
	{"wallets", mustBeKeys, listNames(wallets)},
	{"mode", "none", func(q *query, value string) bool {
		q.wants.everything = false
		return value == "none"
	}},
	{"extended", mustBeBool, func(q *query, value string) bool { return parseBool(&q.extended, value) }},
	{"tokens", mustBeBool, func(q *query, value string) bool { return parseBool(&q.tokens, value) }},
	{"data", mustBeBool, func(q *query, value string) bool { return parseBool(&q.data, value) }},
	{"commitment", "processed, confirmed or finalized", func(q *query, value string) (ok bool) {
		q.level, ok = ledger.ParseCommitment(value)
		return ok
	}},
	{"resume_from", mustBeSeq, func(q *query, value string) bool { return parseNumber(&q.resume, value) }},
	{"overflow", "disconnect or conflate", func(q *query, value string) bool {
		q.conflates = value == "conflate"
		return q.conflates || value == "disconnect"
	}},
}

func listNames(kind nameKind) func(*query, string) bool {
	return func(q *query, value string) bool {
		q.wants.everything = false
		return q.names.parse(kind, strings.Split(value, ","))
	}
}

var errManyNames = errors.New("more than 10000 keys")

// parseQuery reads the query of a handshake. A parameter that there is not is an error, because a misspelt one would subscribe to everything;
// those that begin with an underscore are for others, and ignored.
func parseQuery(args *fasthttp.Args) (q query, err error) {
	given := make(map[string]bool)
	q.wants.everything = true
	for key, value := range args.All() {
		name := string(key)
		at := slices.IndexFunc(parameters, func(p parameter) bool { return p.name == name })
		switch {
		case strings.HasPrefix(name, "_"):
			continue
		case at < 0:
			var known []string
			for _, p := range parameters {
				known = append(known, p.name)
			}
			return q, errUnknown("parameter", name, known)
		case given[name] || len(value) == 0:
			return q, fmt.Errorf("%s must be given once and not be empty", name)
		case !parameters[at].set(&q, string(value)):
			return q, fmt.Errorf("%s must be %s", name, parameters[at].must)
		}
		given[name] = true
	}
	if q.names.count() > maxNames {
		return q, errManyNames
	}
	q.wants.names, _ = q.wants.names.plus(q.names)
	q.wants.show(q.extended, q.tokens, q.data)
	return q, nil
}
