package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ledgerd/engine/source/unpack"
)

// input is one file to read.
type input struct {
	path     string // "-" is standard input
	inFolder bool   // found in a folder, not named by the operator
	stream   bool   // not a regular file: reading may wait, and happens once
}

// name returns how messages call the input.
func (in input) name() string {
	if in.path == "-" {
		return "standard input"
	}
	return in.path
}

// base returns the last element of the path, "" for standard input.
func (in input) base() string {
	if in.path == "-" {
		return ""
	}
	return filepath.Base(in.path)
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
	stdin := false
	for _, p := range paths {
		switch {
		case p == "":
			return nil, false, errors.New("a path in the list is empty")
		case p == "-" && stdin:
			return nil, false, errors.New(`standard input ("-") is given twice`)
		case p == "-":
			stdin = true
		}
	}
	return paths, hasOption, nil
}

// expand returns the inputs that path stands for: itself, or the files of a folder in
// name order. Hidden files and folders inside the folder are left out.
func expand(path string) ([]input, error) {
	if path == "-" {
		return []input{{path: path, stream: true}}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, unpack.Reason(err))
	}
	if !info.IsDir() {
		return one(path, info, false)
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
		member := filepath.Join(path, e.Name())
		info, err := os.Stat(member)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", member, unpack.Reason(err))
		}
		if info.IsDir() {
			continue
		}
		in, err := one(member, info, true)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in...)
	}
	if len(inputs) == 0 {
		return nil, fmt.Errorf("folder %s holds no files", path)
	}
	return inputs, nil
}

// one returns the input of one file, after a regular file was opened once to see that it
// can be. A pipe is not: opening it would wait for its writer.
func one(path string, info fs.FileInfo, inFolder bool) ([]input, error) {
	in := input{path: path, inFolder: inFolder, stream: !info.Mode().IsRegular()}
	if !in.stream {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, unpack.Reason(err))
		}
		f.Close()
	}
	return []input{in}, nil
}
