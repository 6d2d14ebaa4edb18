package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"ledgerd/engine/source/unpack"
	"ledgerd/httpd/ratelimit"
)

const maxConfigBytes = 1 << 20

// configFile is a flag whose value is a file that gives values to other flags. The command
// line and the environment win over it.
type configFile string

// BeforeResolve reads the file before the other flags take their defaults. What looks at a file itself reads none.
func (f configFile) BeforeResolve(app *kong.Kong, ctx *kong.Context, trace *kong.Path) error {
	path := string(ctx.FlagValue(trace.Flag).(configFile))
	if path == "" || strings.HasPrefix(ctx.Command(), "config ") {
		return nil
	}
	content, err := readConfig(path)
	if err != nil {
		return err
	}
	settings, wrong := parseSettings(app.Model.Node, content)
	if len(wrong) > 0 {
		return fmt.Errorf("configuration %s, %w", path, wrong[0])
	}
	ctx.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, s := range settings {
			if s.name == flag.Name && !isSet(flag.Tag.Envs) {
				return s.value, nil
			}
		}
		return nil, nil
	}))
	return nil
}

// readConfig returns what a file holds that is small enough to be a configuration. It is no pipe: whoever reads one may wait for ever, and SIGHUP
// has it read again.
func readConfig(path string) ([]byte, error) {
	content, err := unpack.ReadRegular(path, maxConfigBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration %s: %w", path, err)
	}
	return content, nil
}

func isSet(variables []string) bool {
	return slices.ContainsFunc(variables, func(v string) bool {
		_, is := os.LookupEnv(v)
		return is
	})
}

// decimals read whole numbers in decimal digits. What kong has by itself takes 0100 for 64.
var decimals = []kong.Option{
	kong.KindMapper(reflect.Int, decimal("int", strconv.ParseInt, reflect.Value.SetInt)),
	kong.KindMapper(reflect.Int64, decimal("int", strconv.ParseInt, reflect.Value.SetInt)),
	kong.KindMapper(reflect.Uint32, decimal("uint", strconv.ParseUint, reflect.Value.SetUint)),
	kong.KindMapper(reflect.Uint64, decimal("uint", strconv.ParseUint, reflect.Value.SetUint)),
}

func decimal[T int64 | uint64](kind string, parse func(text string, base, bits int) (T, error), set func(reflect.Value, T)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto(kind, &text); err != nil {
			return err
		}
		n, err := parse(text, 10, target.Type().Bits())
		if err != nil {
			return fmt.Errorf("expected a valid %d bit %s but got %q", target.Type().Bits(), kind, text)
		}
		set(target, n)
		return nil
	}
}

// size is a number of bytes, written plainly or with KiB, MiB or GiB.
type size int

// UnmarshalText parses "2GiB", "512MiB" or "1048576".
func (s *size) UnmarshalText(b []byte) error {
	digits, unit := string(b), 1
	for suffix, factor := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(digits, suffix); ok {
			digits, unit = rest, factor
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 40)
	if err != nil || n == 0 || n > 1<<50/uint64(unit) {
		return fmt.Errorf("expected a size like 512MiB or 2GiB")
	}
	*s = size(n) * size(unit)
	return nil
}

// sizeOrNone is a size, or 0 for none.
type sizeOrNone size

// UnmarshalText parses what that of size does, and "0".
func (s *sizeOrNone) UnmarshalText(b []byte) error {
	if string(b) == "0" {
		*s = 0
		return nil
	}
	return (*size)(s).UnmarshalText(b)
}

// prefixes is a list of networks, comma-separated; a bare address is a network of one, unix is the peers of a Unix socket.
type prefixes []netip.Prefix

// UnmarshalText parses "10.0.0.0/8,::1,unix".
func (p *prefixes) UnmarshalText(b []byte) error {
	*p = nil
	for part := range strings.SplitSeq(string(b), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if part == "unix" {
			*p = append(*p, ratelimit.UnixPeers)
			continue
		}
		network, err := netip.ParsePrefix(part)
		if err != nil {
			address, addressErr := netip.ParseAddr(part)
			if addressErr != nil {
				return fmt.Errorf("expected addresses or CIDR networks like 10.0.0.0/8, or unix, separated by commas")
			}
			network = netip.PrefixFrom(address, address.BitLen())
		}
		if a := network.Addr(); a.Is4In6() && network.Bits() >= 96 { // of IPv4, as which peers are compared
			network = netip.PrefixFrom(a.Unmap(), network.Bits()-96)
		}
		*p = append(*p, network.Masked())
	}
	return nil
}

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
