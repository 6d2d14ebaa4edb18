package httpd

import "bytes"

// route is one row of the interface.
type route uint8

const (
	routeNone route = iota // no such path, or a request that could not be read
	routeHealth
	routeStatus
	routeMetrics
	routeOpenAPI
	routeLatestBlock
	routeBlock
	routeTransaction
	routeRecent
	routeAccount
	routeBalance
	routeTokens
	routeProgram
	routeAccounts
	routeSocket
	routes
)

// routeNames are the routes as metrics label them.
var routeNames = [routes]string{
	routeNone:        "none",
	routeHealth:      "health",
	routeStatus:      "status",
	routeMetrics:     "metrics",
	routeOpenAPI:     "openapi",
	routeLatestBlock: "blocks_latest",
	routeBlock:       "block",
	routeTransaction: "transaction",
	routeRecent:      "transactions_recent",
	routeAccount:     "account",
	routeBalance:     "account_balance",
	routeTokens:      "account_tokens",
	routeProgram:     "program_accounts",
	routeAccounts:    "accounts",
	routeSocket:      "ws_accounts",
}

// matchPath returns the route of a decoded path and the variable segment in it. A single
// trailing slash makes no difference.
//
// The paths are few and fixed, so they are matched here and not by a router: that would
// match fasthttp's normalised path, which hides what has to be refused, and would copy
// the variable segment to the heap for every request.
func matchPath(path []byte) (r route, variable []byte) {
	path, ok := bytes.CutPrefix(path, []byte("/api/"))
	if !ok {
		return routeNone, nil
	}
	first, rest, more := bytes.Cut(bytes.TrimSuffix(path, []byte("/")), []byte("/"))
	if !more {
		return matchOne(first), nil
	}
	second, third, more := bytes.Cut(rest, []byte("/"))
	if !more {
		return matchTwo(first, second)
	}
	return matchThree(first, second, third)
}

func matchOne(name []byte) route {
	switch string(name) {
	case "health":
		return routeHealth
	case "status":
		return routeStatus
	case "metrics":
		return routeMetrics
	case "openapi.json":
		return routeOpenAPI
	case "accounts":
		return routeAccounts
	}
	return routeNone
}

func matchTwo(first, second []byte) (route, []byte) {
	if len(second) == 0 {
		return routeNone, nil
	}
	switch string(first) {
	case "account":
		return routeAccount, second
	case "transaction":
		return routeTransaction, second
	case "transactions":
		if string(second) == "recent" {
			return routeRecent, nil
		}
	case "blocks":
		if string(second) == "latest" {
			return routeLatestBlock, nil
		}
		return routeBlock, second
	case "ws":
		if string(second) == "accounts" {
			return routeSocket, nil
		}
	}
	return routeNone, nil
}

func matchThree(first, second, third []byte) (route, []byte) {
	switch {
	case len(second) == 0 || len(third) == 0:
	case string(first) == "account" && string(third) == "balance":
		return routeBalance, second
	case string(first) == "account" && string(third) == "tokens":
		return routeTokens, second
	case string(first) == "accounts" && string(second) == "program" && bytes.IndexByte(third, '/') < 0:
		return routeProgram, third
	}
	return routeNone, nil
}

// checkPath refuses what different readers take for different paths: control bytes and
// two dots in a row.
func checkPath(path []byte) error {
	for i, c := range path {
		if c < ' ' || c == 0x7f || c == '.' && i > 0 && path[i-1] == '.' {
			return errPath
		}
	}
	return nil
}

// unescapePath appends the path with its escapes decoded to dst. Beside what checkPath
// refuses it refuses bad escapes and an escaped slash.
func unescapePath(dst, path []byte) ([]byte, error) {
	slashes := bytes.Count(path, []byte("/"))
	decoded, ok := decodeEscapes(dst, path)
	if !ok || bytes.Count(decoded, []byte("/")) != slashes {
		return decoded, errPath
	}
	return decoded, checkPath(decoded)
}

// decodeEscapes appends s to dst with every %XX decoded. It is not ok when a percent sign
// is not followed by two hexadecimal digits.
func decodeEscapes(dst, s []byte) ([]byte, bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) {
				return dst, false
			}
			hi, lo := hexValue(s[i+1]), hexValue(s[i+2])
			if hi < 0 || lo < 0 {
				return dst, false
			}
			c = byte(hi<<4 | lo)
			i += 2
		}
		dst = append(dst, c)
	}
	return dst, true
}

// hexValue returns the value of a hexadecimal digit, or -1.
func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
