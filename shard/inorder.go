package shard

import (
	"github.com/tidwall/btree"

	"ledgerd/engine/ledger"
)

// inOrder walks the values of several versions of the overlay in the order of their keys. The values of one version are
// sorted already, so the walk is a merge of the versions and takes no time to begin, however many values there are. The walk
// omits values that are added during it. No value may be dropped during it.
type inOrder struct {
	overlay *versions
	runs    *btree.BTreeG[sortedRun] // one for each version with values that the walk has not reached
}

// sortedRun is the values of one version that the walk has not reached.
type sortedRun struct {
	prefix  uint64 // of the key of the next value; most comparisons need nothing else
	key     *ledger.Pubkey
	version ledger.Version
	at, end position // the next value and the one past the last
}

// inOrder returns a walk of the values of versions from first to last.
func (o *versions) inOrder(first, last ledger.Version) *inOrder {
	w := &inOrder{o, newTree(func(a, b sortedRun) bool {
		if a.prefix != b.prefix {
			return a.prefix < b.prefix
		}
		if c := a.key.Compare(b.key); c != 0 {
			return c < 0
		}
		return a.version > b.version
	})}
	n := 0
	if first > 0 {
		n = o.upTo(first - 1)
	}
	for all := o.upTo(last); n < all; {
		begin := o.cells.nth(n)
		n = o.upTo(o.cells.at(begin).version)
		w.add(begin, o.cells.nth(n))
	}
	return w
}

// add adds the run of the values from at up to but not including end.
func (w *inOrder) add(at, end position) {
	if at != end {
		value := w.overlay.cells.at(at)
		w.runs.Set(sortedRun{value.key.Prefix(), &value.key, value.version, at, end})
	}
}

// next returns the newest value of the next key, false if there are no more.
func (w *inOrder) next() (newest sortedRun, more bool) {
	newest, more = w.runs.PopMin()
	for r := newest; more; r, _ = w.runs.PopMin() {
		w.add(w.overlay.cells.after(r.at), r.end)
		if next, held := w.runs.Min(); !held || *next.key != *newest.key {
			break
		}
	}
	return newest, more
}
