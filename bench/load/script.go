package load

// Script is requests in the order in which they are sent, so that sending costs neither choice nor
// encoding. It begins again at its end.
type Script [][]byte

// NewScript writes so many requests: write appends the one of an index.
func NewScript(requests int, write func(dst []byte, request int) []byte) Script {
	s := make(Script, requests)
	for i := range s {
		s[i] = write(make([]byte, 0, 256), i)
	}
	return s
}

// AppendGet appends a request for a path. It has the five fields that common clients send, as
// python-requests writes them.
func AppendGet(dst []byte, host, path string) []byte {
	for _, s := range [...]string{
		"GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\nUser-Agent: python-requests/2.32.3\r\nAccept-Encoding: gzip, deflate",
		"\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n",
	} {
		dst = append(dst, s...)
	}
	return dst
}
