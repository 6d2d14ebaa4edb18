package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ledgerd/engine/source/unpack"
)

// input is one file to read.
type input struct {
	path     string // "-" is standard input
	inFolder bool   // found in a folder, not named by the operator
	stream   bool   // not a regular file: reading may wait, and happens once
	bytes    int64  // of a regular file, when it was looked at
}

// name returns how messages call the input.
func (in input) name() string {
	if in.path == "-" {
		return "standard input"
	}
	return in.path
}

// parseSpec splits what follows "file:" into its paths and its only option.
func parseSpec(spec string) (paths []string, gapsAllowed bool, err error) {
	list, option, hasOption := strings.Cut(spec, "?")
	if hasOption && option != "gaps=allow" {
		return nil, false, errors.New(`the only option after "?" is gaps=allow`)
	}
	if list == "" {
		return nil, false, errors.New("no path is given")
	}
	paths = strings.Split(list, ",")
	if slices.Contains(paths, "") {
		return nil, false, errors.New("a path in the list is empty")
	}
	if i := slices.Index(paths, "-"); i >= 0 && slices.Contains(paths[i+1:], "-") {
		return nil, false, errors.New(`standard input ("-") is given twice`)
	}
	return paths, hasOption, nil
}

// expand returns the inputs that path stands for: itself, or the files of a folder in
// name order. Hidden files and folders inside the folder are left out.
func expand(path string) ([]input, error) {
	if path == "-" {
		return []input{{path: path, stream: true}}, nil
	}
	in, isFolder, err := newInput(path)
	if err != nil || !isFolder {
		return []input{in}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read folder %s: %w", path, unpack.Reason(err))
	}
	var inputs []input
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		in, isFolder, err := newInput(filepath.Join(path, e.Name()))
		if err != nil {
			return nil, err
		}
		if !isFolder {
			in.inFolder = true
			inputs = append(inputs, in)
		}
	}
	if len(inputs) == 0 {
		return nil, fmt.Errorf("folder %s holds no files", path)
	}
	return inputs, nil
}

// newInput returns the input of one file, after a regular file was opened once to see that it can be. A pipe is not:
// opening it would wait for its writer.
func newInput(path string) (in input, isFolder bool, err error) {
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			f.Close()
		}
	}
	if err != nil {
		return in, false, fmt.Errorf("cannot read %s: %w", path, unpack.Reason(err))
	}
	in = input{path: path, stream: !info.Mode().IsRegular()}
	if !in.stream {
		in.bytes = info.Size()
	}
	return in, info.IsDir(), nil
}
