package rpc

import (
	"bytes"
	"encoding/json"
	"iter"
	"strconv"
)

// members returns the names and values of an object, in their order: nothing where text is no JSON or no object. A tree of an answer takes a hundred
// times its bytes, so its values are skipped instead.
func members(text []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		text := bytes.TrimSpace(text)
		if len(text) == 0 || text[0] != '{' || !json.Valid(text) {
			return
		}
		eachMember(text, yield)
	}
}

// eachMember yields the members of an object of valid JSON.
func eachMember(object []byte, yield func(string, []byte) bool) {
	for rest := object[1:]; ; {
		begin := bytes.IndexByte(rest, '"')
		if begin < 0 || rest[0] == '}' { // after the last member, or in an empty object
			return
		}
		rest = rest[begin:]
		end := stringEnd(rest)
		var name string
		_ = json.Unmarshal(rest[:end], &name)
		rest = rest[end:]
		rest = rest[bytes.IndexByte(rest, ':')+1:]
		end = valueEnd(rest)
		if !yield(name, bytes.TrimSpace(rest[:end])) {
			return
		}
		rest = rest[end:]
	}
}

// valueEnd returns where the value that text begins with ends, with the spaces behind it: before a comma or the end of what it is in.
func valueEnd(text []byte) int {
	depth := 0
	for at := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			at += stringEnd(text[at:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth < 0 {
				return at
			}
		case ',':
			if depth == 0 {
				return at
			}
		}
	}
	return len(text)
}

// stringEnd returns where the string that text begins with ends.
func stringEnd(text []byte) int {
	for at := 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(text)
}

// find returns the value at a path of names in valid JSON; nil: there is none.
func find(value []byte, path ...string) []byte {
	for _, step := range path {
		var found []byte
		if len(value) > 0 && value[0] == '{' {
			eachMember(value, func(name string, of []byte) bool {
				if name == step {
					found = of
				}
				return found == nil
			})
		}
		value = found
	}
	return value
}

// number returns the whole number that a value is.
func number(value []byte) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(value), 10, 64)
	return n, err == nil
}
