package datadir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

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
	// Data are the programs whose accounts are held with their data; nil: none.
	Data *ledger.DataPrograms `json:"data,omitempty"`
}

// FactsOf returns the facts of a source, a filter, the programs whose data is held, and a choice about vote transactions.
func FactsOf(info ledger.SourceInfo, f *ledger.Filter, data *ledger.DataPrograms, skipVotes bool) Facts {
	return Facts{Source: info.Identity, Complete: info.Complete, Live: info.Live, SkipVotes: skipVotes, Filter: f, Data: data}
}

// facts returns the facts that a directory is bound to.
func (n nodeFile) facts() Facts {
	f := Facts{Complete: n.Complete, Live: n.Live, Filter: n.Filter, Data: n.Data}
	if n.Source != nil {
		f.Source = *n.Source
	}
	if n.SkipVotes != nil {
		f.SkipVotes = *n.SkipVotes
	}
	return f
}

// Encode returns the facts as JSON: the same bytes for the same facts.
func (f *Facts) Encode() []byte { return encode(f) }

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
		{"--data", f.Data.String(), others.Data.String()},
	} {
		if c.a != c.b {
			return fmt.Sprintf("%s: %s here, %s there", c.name, c.a, c.b)
		}
	}
	return ""
}

// flagsOf returns the command line flags of a filter. It is the same for filters that list the same keys.
func flagsOf(f *ledger.Filter) string {
	if f == nil {
		return "without filters"
	}
	text := "with"
	if owners := f.Owners(); len(owners) > 0 {
		text += " --index-owners " + ledger.JoinKeys(owners)
	}
	if accounts := f.Accounts(); len(accounts) > 0 {
		text += " --index-accounts " + ledger.JoinKeys(accounts)
	}
	return text
}
