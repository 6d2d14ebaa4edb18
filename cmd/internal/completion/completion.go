// Package completion completes the command lines of the programs in bash, zsh and fish. A program prints a script for its shell, and
// the script asks the program for the words that may stand where the cursor is: they come from what kong parses.
package completion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Command prints the script of a shell.
type Command struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"${enum}."`
}

// Help says what to do with it.
func (Command) Help() string {
	return "Write it to a file, and source that in the file that the shell reads at its start; in zsh after compinit."
}

// Run prints the script.
func (c *Command) Run(app *kong.Kong) error {
	_, err := fmt.Fprint(app.Stdout, strings.ReplaceAll(scripts[c.Shell], "PROGRAM", app.Model.Name))
	return err
}

// Words is what the scripts ask. They give all words up to the cursor, and the beginning of the one that it is in.
type Words struct {
	Words []string `arg:"" optional:""`
}

// Run prints a word a line.
func (w *Words) Run(app *kong.Kong) error {
	for _, word := range words(app.Model.Node, w.Words) {
		fmt.Fprintln(app.Stdout, word)
	}
	return nil
}

// Bash takes the sign = for a word. Where nothing is found the shells complete names of files.
var scripts = map[string]string{
	"bash": `_PROGRAM() {
	local IFS=$'\n' word=${COMP_WORDS[COMP_CWORD]}
	[[ $word == = ]] && word=
	COMPREPLY=($(compgen -W "$(PROGRAM complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "$word"))
}
complete -o default -F _PROGRAM PROGRAM
`,
	"zsh": `#compdef PROGRAM
_PROGRAM() {
	local -a found
	found=(${(f)"$(PROGRAM complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
	if (( $#found )); then compadd -- $found; else _files; fi
}
if [[ $funcstack[1] == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
`,
	"fish": `function __PROGRAM_words
	set -l found (PROGRAM complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
	set -q found[1]; and printf '%s\n' $found
	or __fish_complete_path (commandline -ct)
end
complete -c PROGRAM -f -a '(__PROGRAM_words)'
`,
}

// words returns what may stand in the place of the last of the words typed, and begins with it.
func words(app *kong.Node, typed []string) (found []string) {
	typed = append([]string{""}, typed...) // there may be none
	last := strings.TrimPrefix(typed[len(typed)-1], "=")
	typed = slices.DeleteFunc(typed[:len(typed)-1], func(w string) bool { return w == "=" })
	node, valueOf := app, (*kong.Flag)(nil)
	for _, word := range typed {
		switch {
		case valueOf != nil:
			valueOf = nil
		case strings.HasPrefix(word, "-"):
			valueOf = flag(node, word)
		default:
			if i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word }); i >= 0 {
				node = node.Children[i]
			}
		}
	}
	name, _, whole := strings.Cut(last, "=")
	switch f := flag(node, name); {
	case valueOf != nil:
		found = values(valueOf.Enum)
	case whole && f != nil:
		for _, v := range values(f.Enum) {
			found = append(found, name+"="+v)
		}
	case strings.HasPrefix(last, "-") || len(node.Children) == 0 && len(node.Positional) == 0:
		for _, flags := range node.AllFlags(true) {
			for _, f := range flags {
				found = append(found, "--"+f.Name)
			}
		}
	default:
		for _, n := range node.Children {
			if !n.Hidden {
				found = append(found, n.Name)
			}
		}
		for _, p := range node.Positional {
			found = append(found, values(p.Enum)...)
		}
	}
	return slices.DeleteFunc(found, func(w string) bool { return !strings.HasPrefix(w, last) })
}

// flag returns the flag of a name that takes a value from the next word, nil if there is none.
func flag(node *kong.Node, name string) *kong.Flag {
	for _, flags := range node.AllFlags(true) {
		for _, f := range flags {
			if !f.IsBool() && (name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short)) {
				return f
			}
		}
	}
	return nil
}

// values returns the values of an enumeration.
func values(enum string) []string {
	if enum == "" {
		return nil
	}
	return strings.Split(enum, ",")
}
