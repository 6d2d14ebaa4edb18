package apikey

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"ledgerd/httpd/ratelimit"
)

// Tier says what its keys may do.
type Tier struct {
	PerMinute Count `yaml:"requests_per_minute"` // 0: as callers without a key
	PerHour   Count `yaml:"requests_per_hour"`   // 0: as callers without a key
	Sockets   Count `yaml:"sockets"`             // WebSockets of one key; 0: as callers without a key
	Exempt    bool  `yaml:"exempt"`              // no limit of these holds
}

// Count is a whole number in decimal digits. An int would take 1.9 for 1, 0.5 for no limit, and 0100 for 64.
type Count int

// UnmarshalYAML reads a whole number.
func (c *Count) UnmarshalYAML(n *yaml.Node) error {
	i, err := strconv.Atoi(n.Value)
	if err != nil || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		return fmt.Errorf("line %d: a limit is a whole number", n.Line)
	}
	*c = Count(i)
	return nil
}

// Entry is a key as a file has it.
type Entry struct {
	Name string `yaml:"name"`
	Tier string `yaml:"tier"`
	Hash string `yaml:"hash"` // sha256: and the hexadecimal digest of the key's text
}

// File is what a file holds.
type File struct {
	Tiers map[string]Tier `yaml:"tiers"`
	Keys  []Entry         `yaml:"keys"`
}

// maxNameBytes is the longest name of a key or tier.
const maxNameBytes = 64

// inWords says in words what the decoder says with the names of the types here.
var inWords = strings.NewReplacer(
	"not found in type apikey.File", "is none of tiers, keys",
	"not found in type apikey.Tier", "is none of requests_per_minute, requests_per_hour, sockets, exempt",
	"not found in type apikey.Entry", "is none of name, tier, hash",
	"into apikey.File", "into a file of tiers and keys", "into map[string]apikey.Tier", "into tiers by name", "into apikey.Tier", "into a tier",
	"into []apikey.Entry", "into a list of keys", "into apikey.Entry", "into a key",
)

// Parse reads a file. Its errors name the key, or the line.
func Parse(content []byte) (*File, error) {
	var f *File
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	switch err := decoder.Decode(&f); {
	case errors.Is(err, io.EOF), err == nil && f == nil:
		return nil, errors.New("it is empty: write the tiers first") // as an editor leaves it for a moment
	case err != nil:
		if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
			return nil, errors.New(inWords.Replace(strings.Join(wrong.Errors, "; ")))
		}
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(new(File)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one YAML document")
	}
	return f, f.check()
}

func (f *File) check() error {
	for name, t := range f.Tiers {
		switch {
		case !isName(name):
			return fmt.Errorf("tier %q: a name is 1 to %d letters, digits, dots, dashes or underscores", name, maxNameBytes)
		case min(t.PerMinute, t.PerHour, t.Sockets) < 0 || max(t.PerMinute, t.PerHour, t.Sockets) > ratelimit.MaxLimit:
			return fmt.Errorf("tier %q: limits are from 0 to %d", name, ratelimit.MaxLimit)
		case t.Exempt && t != Tier{Exempt: true}:
			return fmt.Errorf("tier %q is exempt, and has limits", name)
		}
	}
	names, hashes := make(map[string]bool), make(map[digest]bool)
	for _, e := range f.Keys {
		hash, err := e.digest()
		switch _, known := f.Tiers[e.Tier]; {
		case !isName(e.Name):
			return fmt.Errorf("key %q: a name is 1 to %d letters, digits, dots, dashes or underscores", e.Name, maxNameBytes)
		case names[e.Name]:
			return fmt.Errorf("key %q is there twice", e.Name)
		case !known:
			return fmt.Errorf("key %q: there is no tier %q", e.Name, e.Tier)
		case err != nil:
			return fmt.Errorf("key %q: %w", e.Name, err)
		case hashes[hash]:
			return fmt.Errorf("key %q has the hash of another one", e.Name)
		}
		names[e.Name], hashes[hash] = true, true
	}
	return nil
}

func isName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// hashPrefix is in front of a hash in a file.
const hashPrefix = "sha256:"

func (e *Entry) digest() (d digest, err error) {
	text, ok := strings.CutPrefix(e.Hash, hashPrefix)
	decoded, err := hex.DecodeString(text)
	if !ok || err != nil || copy(d[:], decoded) != len(d) || len(decoded) != len(d) {
		return d, errors.New("the hash is not of the form sha256:HEX, of 32 bytes")
	}
	return d, nil
}
