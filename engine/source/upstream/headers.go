package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ledgerd/engine/source/unpack"
)

const (
	tokenBytes      = 4096     // bounds a token, and a header
	headerFileBytes = 64 << 10 // bounds a file that holds them
	maxHeaders      = 32
)

// HeaderFiles say what a node is sent to let us in. The zero value is nothing.
type HeaderFiles struct {
	Token                 string // sent as x-token where it is not empty; never shown
	TokenFile, HeaderFile string // hold the token, and a header a line, as "name: value"; "": there is none
}

// Set takes an option of an address that names a file, and reports whether it is one.
func (f *HeaderFiles) Set(option, value string) bool {
	switch option {
	case "token-file":
		f.TokenFile = value
	case "header-file":
		f.HeaderFile = value
	default:
		return false
	}
	return true
}

// Headers are names and values in turn, as they are sent.
type Headers []string

// Read returns what is sent now: files are read again. An error shows nothing of it.
func (f *HeaderFiles) Read() (h Headers, err error) {
	token := f.Token
	if f.TokenFile != "" {
		if token, err = readSecret("token-file", f.TokenFile); err != nil {
			return nil, err
		}
	}
	if token != "" {
		if !isSendable(token) {
			return nil, errors.New("the token is too long or holds characters that cannot be sent")
		}
		h = append(h, "x-token", token)
	}
	if f.HeaderFile == "" {
		return h, nil
	}
	lines, err := readSecret("header-file", f.HeaderFile)
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(lines, "\n") {
		name, value, isHeader := strings.Cut(line, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		if !isHeader || !headerName.MatchString(name) || ofTransport.MatchString(name) || !isSendable(value) || n == maxHeaders {
			return nil, fmt.Errorf("line %d of the file that header-file names is no header that can be sent", n+1)
		}
		h = append(h, name, value)
	}
	return h, nil
}

var (
	// headerName matches the names that gRPC takes for headers.
	headerName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)
	// ofTransport matches those that gRPC and HTTP set themselves. With an accept-encoding of ours net/http does not unpack the answers, it ignores a
	// host, HTTP/2 forbids the headers of a connection, and gRPC leaves out a content-type without a word.
	ofTransport = regexp.MustCompile(`^(grpc-.*|accept-encoding|host|content-length|content-type|connection|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$`)
)

func isSendable(value string) bool {
	return value != "" && len(value) <= tokenBytes && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

// Get returns the value that a name, in lower case, is sent with first; "" if it is not.
func (h Headers) Get(name string) string {
	for header := range slices.Chunk(h, 2) {
		if header[0] == name {
			return header[1]
		}
	}
	return ""
}

// Secrets returns the values and the words in them, the longest first.
func (h Headers) Secrets() (values []string) {
	const word = 4 // shorter ones are none
	for i := 1; i < len(h); i += 2 {
		for _, value := range append(strings.Fields(h[i]), h[i]) {
			if len(value) >= word || value == h[i] {
				values = append(values, value)
			}
		}
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(values)
}

// readSecret reads what a file holds that an option names.
func readSecret(option, path string) (string, error) {
	content, err := unpack.ReadRegular(path, headerFileBytes)
	if err != nil {
		return "", fmt.Errorf("the file that %s names cannot be read: %w", option, err)
	}
	text := string(bytes.TrimSpace(content))
	if text == "" {
		return "", fmt.Errorf("the file that %s names is empty", option)
	}
	return text, nil
}
