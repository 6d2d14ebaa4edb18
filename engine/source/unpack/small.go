package unpack

import (
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

// ReadRegular is ReadSmall of a file that is read again later, as CheckRegular takes it.
func ReadRegular(path string, most int64) ([]byte, error) {
	if err := CheckRegular(path); err != nil {
		return nil, Reason(err)
	}
	return ReadSmall(path, most)
}

// CheckRegular returns an error unless each of these is a regular file. What is read again while the node runs must be one: whoever reads a pipe
// then may wait for ever. An empty name is none.
func CheckRegular(paths ...string) error {
	for _, path := range paths {
		if path == "" {
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a regular file", path)
		}
	}
	return nil
}
