package stream

import (
	"strings"

	"github.com/valyala/fasthttp"
)

// parseQuery reads the query of a handshake. A parameter that there is not is an error, because a misspelt one would subscribe to everything;
// those that begin with an underscore are for others, and ignored. There are never too
// many of them, which the server refuses before it asks, nor too many names: a request line holds some 240.
func parseQuery(args *fasthttp.Args) (r request, err error) {
	r.kind = connect
	sent := make(map[string]string)
	for key, value := range args.All() {
		name := string(key)
		if _, twice := sent[name]; twice {
			value = nil
		}
		if !strings.HasPrefix(name, "_") {
			sent[name] = string(value)
		}
	}
	err = take(&r, sent, "parameter")
	return r, err
}
