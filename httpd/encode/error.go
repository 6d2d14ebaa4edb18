package encode

import "github.com/valyala/fasthttp"

// AppendError appends the error record of a status. details is for people and repeats nothing
// that was received.
func AppendError(dst []byte, status int, details string) []byte {
	dst = append(dst, `{"error":"`...)
	dst = append(dst, ErrorText(status)...)
	dst = append(dst, `","details":`...)
	dst = AppendString(dst, details)
	return append(dst, '}')
}

// ErrorText returns the fixed text of a status.
func ErrorText(status int) string {
	switch status {
	case fasthttp.StatusBadRequest:
		return "Invalid request parameters"
	case fasthttp.StatusUnauthorized:
		return "Unauthorized"
	case fasthttp.StatusForbidden: // on the operators' listener alone
		return "Forbidden"
	case fasthttp.StatusNotFound:
		return "Resource not found"
	case fasthttp.StatusMethodNotAllowed:
		return "Method not allowed"
	case fasthttp.StatusRequestTimeout:
		return "Request timeout"
	case fasthttp.StatusRequestEntityTooLarge:
		return "Request body too large"
	case fasthttp.StatusRequestURITooLong:
		return "URI too long"
	case fasthttp.StatusRequestHeaderFieldsTooLarge:
		return "Request header fields too large"
	case fasthttp.StatusTooManyRequests:
		return "Rate limit exceeded"
	case fasthttp.StatusServiceUnavailable:
		return "Service unavailable"
	}
	return "Internal server error"
}
