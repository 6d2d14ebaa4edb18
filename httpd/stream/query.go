package stream

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// query is what a client asks for as it connects.
type query struct {
	wants  wants
	level  ledger.Commitment
	resume ledger.Opt[ledger.Seq]

	conflates bool
}

var (
	errManyNames = errors.New("more than 10000 keys")
)

// parameters set what a parameter means; false if the value is not allowed.
var parameters = map[string]func(*query, string) bool{
	"mode": func(_ *query, v string) bool { return v == "none" },
	"extended": func(q *query, v string) bool {
		q.wants.show(v == "true", false)
		return v == "true" || v == "false"
	},
	"tokens": func(q *query, v string) bool {
		q.wants.show(false, v == "true")
		return v == "true" || v == "false"
	},
	"commitment": func(q *query, v string) (ok bool) {
		q.level, ok = ledger.ParseCommitment(v)
		return ok
	},
	"resume_from": func(q *query, v string) (ok bool) {
		q.resume.Known = true
		q.resume.Value, ok = parseSeq([]byte(v))
		return ok
	},
	"overflow": func(q *query, v string) bool {
		q.conflates = v == "conflate"
		return q.conflates || v == "disconnect"
	},
}

// parseQuery reads the query of a handshake. Nothing of it is echoed.
func parseQuery(args *fasthttp.Args) (q query, err error) {
	given := make(map[string]bool)
	q.wants.everything = true
	for key, value := range args.All() {
		name := string(key)
		set, kind := parameters[name], kindOf(name)
		if set == nil && kind == nameKinds {
			continue
		}
		if given[name] || len(value) == 0 {
			return q, fmt.Errorf("%s must be given once and not be empty", name)
		}
		given[name] = true
		if kind < nameKinds || name == "mode" {
			q.wants.everything = false
		}
		if kind < nameKinds {
			if bytes.Count(value, []byte{','}) >= maxNames {
				return q, errManyNames
			}
			if err := q.wants.names.parse(kind, strings.Split(string(value), ",")); err != nil {
				return q, err
			}
		} else if !set(&q, string(value)) {
			return q, errors.New(name + " has a value that is not allowed")
		}
	}
	if q.wants.names.count() > maxNames {
		return q, errManyNames
	}
	return q, nil
}

// kindOf returns the kind of names that a parameter lists, nameKinds if it lists none.
func kindOf(parameter string) nameKind {
	for kind, name := range kindNames {
		if name == parameter {
			return nameKind(kind)
		}
	}
	return nameKinds
}
