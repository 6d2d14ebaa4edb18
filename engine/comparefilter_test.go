package engine

import (
	"fmt"
	"strings"

	"ledgerd/engine/ledger"
)

// dataFilter returns a filter by what the generator writes as data, nil for none.
func (c *comparer) dataFilter() *ledger.DataFilter {
	if c.r.IntN(2) == 0 {
		return nil
	}
	f := &ledger.DataFilter{}
	if c.r.IntN(2) == 0 {
		f.Size = ledger.Some(uint64(c.r.IntN(4)))
	}
	for range c.r.IntN(3) {
		from, offset := c.r.IntN(3), uint64(c.r.IntN(5))
		if c.r.IntN(4) > 0 {
			offset = uint64(from) // some have it there
		}
		f.Parts = append(f.Parts, ledger.DataPart{Offset: offset, Bytes: []byte("data"[from : from+1+c.r.IntN(2)])})
	}
	return f
}

// taken reports whether a filter takes an account that looks like this.
func (a seen) taken(f *ledger.DataFilter) bool {
	if f == nil {
		return true
	}
	data := a.data.Value
	if !a.data.Known || f.Size.Known && f.Size.Value != uint64(len(data)) {
		return false
	}
	for _, p := range f.Parts {
		if p.Offset > uint64(len(data)) || !strings.HasPrefix(data[p.Offset:], string(p.Bytes)) {
			return false
		}
	}
	return true
}

// program reads the list of a program's accounts that a filter takes. Each page says whether it passed over one of unknown data. It may have looked
// beyond its last account.
func (c *comparer) program(e *Engine, q ledger.Query, s shown, program ledger.Pubkey, limit int, where *ledger.DataFilter) error {
	q.Where = where
	want := s.world.members(func(a seen) bool { return a.ownedBy(program) && a.taken(where) })
	err := c.pages(s, program, want, limit, func(after ledger.Opt[ledger.Pubkey]) ([]ledger.Account, ledger.Opt[ledger.Pubkey], ledger.View, error) {
		page, next, v, err := e.Program(q, program, after, limit, make([]ledger.Account, 0, c.r.IntN(8)))
		unknown := func(last ledger.Opt[ledger.Pubkey]) bool {
			return len(s.world.members(func(a seen) bool {
				return where != nil && a.ownedBy(program) && !a.data.Known &&
					(!after.Known || comparePubkeys(a.pubkey, after.Value) > 0) && (!last.Known || comparePubkeys(a.pubkey, last.Value) <= 0)
			})) > 0
		}
		if err == nil && (unknown(next) && !v.DataUnknown || v.DataUnknown && !unknown(ledger.Opt[ledger.Pubkey]{})) {
			err = fmt.Errorf("the page after %v says %v of accounts of unknown data", after, v.DataUnknown)
		}
		return page, next, v, err
	})
	if err != nil && where != nil {
		return fmt.Errorf("where %+v: %w", *where, err)
	}
	return err
}
