package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// setting is what a configuration says of one flag: the value as it would stand on the command line.
type setting struct {
	name, value string
	line        int
}

// settingError is what is wrong with a line of a configuration. Line 0 is none in particular.
type settingError struct {
	line int
	text string
}

func (e *settingError) Error() string {
	if e.line == 0 {
		return e.text
	}
	return fmt.Sprintf("line %d: %s", e.line, e.text)
}

// parseSettings returns what a configuration says, and what is wrong with its form and names. One file serves all commands of
// app, so a name is right where any command has such a flag.
func parseSettings(app *kong.Node, content []byte) (settings []setting, wrong []*settingError) {
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(endsInColon.ReplaceAll(content, []byte("$1'$2'$3"))))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, []*settingError{syntaxError(err)}
	}
	switch err := decoder.Decode(&more); {
	case err == nil:
		return nil, []*settingError{{more.Line, "a second YAML document begins; only one is read"}}
	case !errors.Is(err, io.EOF):
		return nil, []*settingError{syntaxError(err)}
	}
	if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, []*settingError{{root.Line, notSettings}}
	}
	lines := make(map[string]int)
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		written, err := text(value)
		switch before, twice := lines[key.Value], lines[key.Value] > 0; {
		case twice:
			wrong = append(wrong, &settingError{key.Line, fmt.Sprintf("%q is set in line %d already", key.Value, before)})
		case !isFlag(app.Children, key.Value):
			wrong = append(wrong, &settingError{key.Line, fmt.Sprintf("there is no flag of the name %q%s", key.Value, suggestion(key.Value))})
		case err != nil:
			wrong = append(wrong, &settingError{key.Line, fmt.Sprintf("%q %v", key.Value, err)})
		default:
			settings = append(settings, setting{key.Value, written, key.Line})
		}
		lines[key.Value] = key.Line
	}
	return settings, wrong
}

// endsInColon finds values like sim: which YAML takes for keys without quotes.
var endsInColon = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*:[ \t]+)([a-z][^\s'"#]*:)([ \t]*(?:#.*)?)$`)

// suggestion returns what kong takes a mistyped name of a flag for, as the end of a sentence, "" where nothing is like it.
func suggestion(name string) string {
	quiet := []kong.Option{kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {})} // for flags such as --help, which are none of a configuration
	_, err := newParser(&commands{}, quiet...).Parse([]string{"serve", "--" + name})
	_, guess, found := strings.Cut(fmt.Sprint(err), ", did you mean ")
	if !found {
		return ""
	}
	return ", did you mean " + strings.ReplaceAll(guess, `"--`, `"`)
}

const notSettings = "it is not YAML of the form 'flag: value'"

// syntaxError says where the reader of YAML gave up.
func syntaxError(err error) *settingError {
	return &settingError{0, fmt.Sprintf("%s: %v", notSettings, err)}
}

// isFlag reports whether any of the commands has a flag of that name.
func isFlag(commands []*kong.Node, name string) bool {
	return slices.ContainsFunc(commands, func(n *kong.Node) bool { return hasFlag(n, name) || isFlag(n.Children, name) })
}

// hasFlag reports whether a command takes a flag of that name; those of the program itself are not meant.
func hasFlag(n *kong.Node, name string) bool {
	for ; n.Parent != nil; n = n.Parent {
		if slices.ContainsFunc(n.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			return true
		}
	}
	return false
}

// text writes a YAML value as it would stand on the command line.
func text(value *yaml.Node) (string, error) {
	var one string
	var list []string
	switch {
	case value.Tag == "!!null":
		return "", errors.New(`has no value: write "" for an empty one`)
	case value.Decode(&one) == nil:
		return one, nil
	case value.Decode(&list) == nil:
		return strings.Join(list, ","), nil
	}
	return "", errors.New("takes one value, or a list of values")
}
