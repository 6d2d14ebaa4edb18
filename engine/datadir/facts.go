package datadir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"ledgerd/engine/ledger"
)

// Facts are what the nodes of one ledger have to agree on, and one without a source cannot know.
type Facts struct {
	Source    string         // identity of the source
	Complete  bool           // the source shows every account of its ledger
	Live      bool           // it follows a node: where nothing comes for long something is wrong
	SkipVotes bool           // vote transactions are not held
	Filter    *ledger.Filter // which accounts are held; nil: all
}

// FactsOf returns what the others have to be told of a source and of what is held of it.
func FactsOf(info ledger.SourceInfo, f *ledger.Filter, skipVotes bool) Facts {
	return Facts{Source: info.Identity, Complete: info.Complete, Live: info.Live, SkipVotes: skipVotes, Filter: f}
}

// factsNote is Facts as they are stored.
type factsNote struct {
	Source    string      `json:"source_identity"`
	Complete  bool        `json:"complete"`
	Live      bool        `json:"live"`
	SkipVotes bool        `json:"skip_votes"`
	Filter    *filterNote `json:"filter,omitempty"` // absent where all accounts are held
}

func (f *Facts) note() factsNote {
	return factsNote{f.Source, f.Complete, f.Live, f.SkipVotes, noteOf(f.Filter)}
}

func (n *factsNote) facts() (Facts, error) {
	filter, err := n.Filter.filter()
	return Facts{n.Source, n.Complete, n.Live, n.SkipVotes, filter}, err
}

// Encode returns the facts as JSON: the same bytes for the same facts.
func (f *Facts) Encode() []byte {
	b, err := json.Marshal(f.note())
	if err != nil {
		panic(err) // it is all strings and flags
	}
	return b
}

// DecodeFacts is the inverse of Encode. It takes nothing else: what it does not know may matter.
func DecodeFacts(b []byte) (Facts, error) {
	var n factsNote
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(&n)
	var f Facts
	if err == nil {
		f, err = n.facts()
	}
	if err == nil && !bytes.Equal(b, f.Encode()) {
		err = errors.New("they are not as they would be written")
	}
	if err != nil {
		return Facts{}, fmt.Errorf("cannot read the facts of the ledger, which a newer version may have written: %w", err)
	}
	return f, nil
}

// Difference names the first fact in which others differ, with both values; "" if there is none.
func (f *Facts) Difference(others *Facts) string {
	a, b := f.note(), others.note()
	for _, c := range []struct{ name, a, b string }{
		{"source", fmt.Sprintf("%q", a.Source), fmt.Sprintf("%q", b.Source)},
		{"completeness of the source", fmt.Sprint(a.Complete), fmt.Sprint(b.Complete)},
		{"liveness of the source", fmt.Sprint(a.Live), fmt.Sprint(b.Live)},
		{"--skip-votes", fmt.Sprint(a.SkipVotes), fmt.Sprint(b.SkipVotes)},
		{"filter", a.Filter.flags(), b.Filter.flags()},
	} {
		if c.a != c.b {
			return fmt.Sprintf("%s: %s here, %s there", c.name, c.a, c.b)
		}
	}
	if !a.Filter.same(b.Filter) { // too long to be told
		return "filter: other keys here than there"
	}
	return ""
}
