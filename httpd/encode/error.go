package encode

import (
	"cmp"

	"github.com/valyala/fasthttp"
)

// AppendError appends the error record of a status. details is for people and repeats nothing
// that was received.
func AppendError(dst []byte, status int, details string) []byte {
	dst = append(dst, `{"error":"`...)
	dst = append(dst, ErrorText(status)...)
	dst = append(dst, `","details":`...)
	dst = AppendString(dst, details)
	return append(dst, '}')
}

// errorTexts are the fixed texts of statuses, but for 500.
var errorTexts = map[int]string{
	fasthttp.StatusBadRequest:                   "Invalid request parameters",
	fasthttp.StatusUnauthorized:                 "Unauthorized",
	fasthttp.StatusForbidden:                    "Forbidden", // on the operators' listener alone
	fasthttp.StatusNotFound:                     "Resource not found",
	fasthttp.StatusMethodNotAllowed:             "Method not allowed",
	fasthttp.StatusRequestTimeout:               "Request timeout",
	fasthttp.StatusRequestEntityTooLarge:        "Request body too large",
	fasthttp.StatusRequestURITooLong:            "URI too long",
	fasthttp.StatusRequestedRangeNotSatisfiable: "Range not satisfiable", // on the operators' listener alone
	fasthttp.StatusRequestHeaderFieldsTooLarge:  "Request header fields too large",
	fasthttp.StatusTooManyRequests:              "Rate limit exceeded",
	fasthttp.StatusServiceUnavailable:           "Service unavailable",
}

// ErrorText returns the fixed text of a status.
func ErrorText(status int) string { return cmp.Or(errorTexts[status], "Internal server error") }
