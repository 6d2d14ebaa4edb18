package datadir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ledgerd/engine/ledger"
)

// Facts are properties on which all nodes of one ledger must agree. A node without a source learns them from the
// shared log, which has them as JSON.
type Facts struct {
	Source    string         `json:"source_identity"`
	Complete  bool           `json:"complete"`         // the source shows every account of its ledger
	Live      bool           `json:"live"`             // the source follows a node, so a long time without a block is a failure
	SkipVotes bool           `json:"skip_votes"`       // vote transactions are not held
	Filter    *ledger.Filter `json:"filter,omitempty"` // which accounts are held; nil: all
}

// FactsOf returns the facts of a source, a filter and a choice about vote transactions.
func FactsOf(info ledger.SourceInfo, f *ledger.Filter, skipVotes bool) Facts {
	return Facts{Source: info.Identity, Complete: info.Complete, Live: info.Live, SkipVotes: skipVotes, Filter: f}
}

// facts returns the facts that a directory is bound to.
func (n nodeFile) facts() Facts {
	f := Facts{Complete: n.Complete, Live: n.Live, Filter: n.Filter}
	if n.Source != nil {
		f.Source = *n.Source
	}
	if n.SkipVotes != nil {
		f.SkipVotes = *n.SkipVotes
	}
	return f
}

// Encode returns the facts as JSON: the same bytes for the same facts.
func (f *Facts) Encode() []byte {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and flags can always be encoded
	}
	return b
}

// DecodeFacts is the inverse of Encode. It accepts only bytes that Encode returns, since a field that it does not know
// may matter.
func DecodeFacts(b []byte) (Facts, error) {
	var f Facts
	err := json.Unmarshal(b, &f)
	if err == nil && !bytes.Equal(b, f.Encode()) {
		err = errors.New("they are not as they would be written")
	}
	if err != nil {
		return Facts{}, fmt.Errorf("cannot read the facts of the ledger, which a newer version may have written: %w", err)
	}
	return f, nil
}

// Difference describes the first fact in which f and others differ, with both values; "" if they are equal.
func (f *Facts) Difference(others *Facts) string {
	for _, c := range []struct{ name, a, b string }{
		{"source", fmt.Sprintf("%q", f.Source), fmt.Sprintf("%q", others.Source)},
		{"completeness of the source", fmt.Sprint(f.Complete), fmt.Sprint(others.Complete)},
		{"liveness of the source", fmt.Sprint(f.Live), fmt.Sprint(others.Live)},
		{"--skip-votes", fmt.Sprint(f.SkipVotes), fmt.Sprint(others.SkipVotes)},
		{"filter", flagsOf(f.Filter), flagsOf(others.Filter)},
	} {
		if c.a != c.b {
			return fmt.Sprintf("%s: %s here, %s there", c.name, c.a, c.b)
		}
	}
	if !sameFilter(f.Filter, others.Filter) { // flagsOf shortens both to the same text
		return "filter: other keys here than there"
	}
	return ""
}

// sameFilter reports whether two filters list the same keys.
func sameFilter(a, b *ledger.Filter) bool {
	return slices.Equal(a.Owners(), b.Owners()) && slices.Equal(a.Accounts(), b.Accounts())
}

// flagsOf returns the command line flags of a filter, shortened.
func flagsOf(f *ledger.Filter) string {
	if f == nil {
		return "without filters"
	}
	var flags []string
	for _, l := range []struct {
		name string
		keys []ledger.Pubkey
	}{{"--index-owners", f.Owners()}, {"--index-accounts", f.Accounts()}} {
		switch n := len(l.keys); {
		case n > 4:
			flags = append(flags, fmt.Sprintf("%s %s,… (%d keys)", l.name, ledger.JoinKeys(l.keys[:4]), n))
		case n > 0:
			flags = append(flags, l.name+" "+ledger.JoinKeys(l.keys))
		}
	}
	return "with " + strings.Join(flags, " ")
}
