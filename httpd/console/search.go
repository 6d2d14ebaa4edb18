package console

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// section is what a search finds: a heading of the manual with the text below it, or an operation.
type section struct {
	Page, Title, Href, Text string
	Level                   int    // of the heading; 1: the title of the page
	links                   []link // to what is served here
}

// result is a section that was found, with the text around the first of the words.
type result struct {
	section
	Before, Match, After string
	score                int
}

const (
	maxQueryBytes = 100 // what follows is left out
	maxResults    = 20
	aroundBytes   = 90 // of a snippet, on each side of the word
)

// find returns the sections that have all words of a query, the likeliest first: a word counts
// most in a heading, then in the title of a page, then by how often it occurs, and of equals the shortest comes first.
func find(sections []section, query string) (found []result) {
	words := wordsOf(query)
	if len(words) == 0 {
		return nil
	}
	for _, s := range sections {
		page, title, text := lower(s.Page), lower(s.Title), lower(s.Text)
		score, all := 0, true
		for _, word := range words {
			n := 16*min(word.count(title), 1) + 8*min(word.count(page), 1) + min(word.count(text), 4)
			score, all = score+n, all && n > 0
		}
		if all {
			r := s.around(words[0].find(text))
			r.score = score
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b result) int { return cmp.Or(b.score-a.score, len(a.Text)-len(b.Text)) })
	return found[:min(len(found), maxResults)]
}

// idle are the words of a question that do not say what it is about.
var idle = strings.Fields("a an and are be can do does for how i in is it my of on or that the this to what when where which why with")

// wordsOf returns the words of a query that say what it is about; of one without any, all.
func wordsOf(query string) (words []beginning) {
	all := strings.FieldsFunc(lower(query), func(r rune) bool { return r < utf8.RuneSelf && !isWordByte(byte(r)) })
	telling := slices.DeleteFunc(slices.Clone(all), func(word string) bool { return slices.Contains(idle, word) })
	if len(telling) == 0 {
		telling = all
	}
	for _, word := range telling {
		words = append(words, beginningOf(word))
	}
	return words
}

// beginning is what words have in common that mean the same in other forms. It is in a text where a word begins with it.
type beginning string

func beginningOf(word string) beginning {
	for _, ending := range []string{"ing", "ed", "es", "e", "s"} {
		if rest, ok := strings.CutSuffix(word, ending); ok && (len(rest) > 3 || ending == "s" && len(rest) == 3) {
			return beginning(rest)
		}
	}
	return beginning(word)
}

// find returns where the first word with this beginning is, and how long that is; -1 where there is none.
func (b beginning) find(text string) (at, length int) {
	for at = strings.Index(text, string(b)); at > 0 && isWordByte(text[at-1]); {
		next := strings.Index(text[at+1:], string(b))
		if next < 0 {
			return -1, 0
		}
		at += 1 + next
	}
	if at < 0 {
		return -1, 0
	}
	for length = len(b); at+length < len(text) && isWordByte(text[at+length]); length++ {
	}
	return at, length
}

// count returns how many words have this beginning.
func (b beginning) count(text string) (n int) {
	for at, length := b.find(text); at >= 0; at, length = b.find(text) {
		text = text[at+length:]
		n++
	}
	return n
}

// isWordByte reports whether a byte of a text in lower case is of a word.
func isWordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c >= utf8.RuneSelf
}

// around returns the section with its text around a match; without one, the beginning of its text.
func (s section) around(at, length int) result {
	if at < 0 {
		at, length = 0, 0
	}
	before, match, after := s.Text[:at], s.Text[at:at+length], s.Text[at+length:]
	if n := len(before) - aroundBytes; n > 0 { // whole words
		before = before[n+strings.IndexByte(before[n:], ' ')+1:]
	}
	if len(after) > aroundBytes {
		after = after[:max(strings.LastIndexByte(after[:aroundBytes], ' '), 0)]
	}
	return result{section: s, Before: before, Match: match, After: after}
}

// lower returns s with the letters A to Z in lower case: other letters would change its length.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}
