package unpack

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadSmall returns what is in a file that a person wrote, such as a configuration or a token. It may be a pipe, which is
// waited for. One of more than most bytes is an error. Errors do not name the file.
func ReadSmall(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Reason(err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, Reason(err)
	case int64(len(content)) > most:
		return nil, fmt.Errorf("it has more than %d bytes", most)
	}
	return content, nil
}

// ReadRegular is ReadSmall of a file that is read again later. A pipe cannot be: whoever reads it then may wait for ever.
func ReadRegular(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, Reason(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is read again later, so it must be a regular file")
	}
	return ReadSmall(path, most)
}
