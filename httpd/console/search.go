package console

import (
	"cmp"
	"slices"
	"strings"
)

// section is what a search finds: a heading of the manual with the text below it, or an operation.
type section struct {
	Page, Title, Href, Text string
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
// most in a heading, then in the title of a page, then by how often it occurs.
func find(sections []section, query string) (found []result) {
	words := strings.Fields(lower(query))
	if len(words) == 0 {
		return nil
	}
	for _, s := range sections {
		page, title, text := lower(s.Page), lower(s.Title), lower(s.Text)
		score, all := 0, true
		for _, word := range words {
			n := 16*min(strings.Count(title, word), 1) + 8*min(strings.Count(page, word), 1) + min(strings.Count(text, word), 4)
			score, all = score+n, all && n > 0
		}
		if all {
			r := s.around(strings.Index(text, words[0]), len(words[0]))
			r.score = score
			found = append(found, r)
		}
	}
	slices.SortStableFunc(found, func(a, b result) int { return cmp.Compare(b.score, a.score) })
	return found[:min(len(found), maxResults)]
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
