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
	wants     wants
	names     names
	level     ledger.Commitment
	resume    ledger.Opt[ledger.Seq]
	conflates bool
}

var errManyNames = errors.New("more than 10000 keys")

// parseQuery reads the query of a handshake. Nothing of it is echoed.
func parseQuery(args *fasthttp.Args) (q query, err error) {
	given := make(map[string]bool)
	q.wants.everything = true
	for key, value := range args.All() {
		name := string(key)
		known, err := q.set(name, string(value))
		switch {
		case !known:
			continue
		case given[name] || len(value) == 0:
			return q, fmt.Errorf("%s must be given once and not be empty", name)
		case err != nil:
			return q, err
		}
		given[name] = true
	}
	if q.names.count() > maxNames {
		return q, errManyNames
	}
	q.wants.names, _ = q.wants.names.plus(q.names)
	return q, nil
}

// set sets what a parameter means, if there is such a parameter.
func (q *query) set(name, value string) (known bool, err error) {
	ok := true
	switch name {
	case "pubkeys", "programs", "wallets":
		q.wants.everything = false
		if strings.Count(value, ",") >= maxNames {
			return true, errManyNames
		}
		kind := nameKind(slices.Index(kindNames[:], name))
		return true, q.names.parse(kind, strings.Split(value, ","))
	case "mode":
		q.wants.everything = false
		ok = value == "none"
	case "extended":
		q.wants.show(value == "true", false)
		ok = value == "true" || value == "false"
	case "tokens":
		q.wants.show(false, value == "true")
		ok = value == "true" || value == "false"
	case "commitment":
		q.level, ok = ledger.ParseCommitment(value)
	case "resume_from":
		q.resume.Known = true
		q.resume.Value, ok = parseSeq(value)
	case "overflow":
		q.conflates = value == "conflate"
		ok = q.conflates || value == "disconnect"
	default:
		return false, nil
	}
	if !ok {
		err = errors.New(name + " has a value that is not allowed")
	}
	return true, err
}
